const fs = require('fs');
fs.mkdirSync('results/deep', { recursive: true });
fs.writeFileSync('results/deep/out.txt', 'line\n'.repeat(3));
fs.writeFileSync('bytes.bin', Buffer.from([0, 1, 2, 65]));
fs.writeFileSync('empty', '');
fs.appendFileSync('in.txt', ' and more');
fs.writeFileSync('gone.txt', 'x');
fs.unlinkSync('gone.txt');
fs.writeFileSync('/mnt/out/of.txt', 'a folder of the system');
