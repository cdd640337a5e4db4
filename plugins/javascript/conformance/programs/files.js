const fs = require('fs');
const path = require('path');
fs.mkdirSync('/tmp/rlf-a/b', { recursive: true });
const file = path.join('/tmp/rlf-a', 'b', 'notes.txt');
fs.writeFileSync(file, 'héllo\nworld');
fs.appendFileSync(file, '!');
console.log(fs.readFileSync(file, 'utf8'), fs.readFileSync(file).length, fs.existsSync(file), fs.existsSync('/tmp/rlf-none'));
console.log(fs.readdirSync('/tmp/rlf-a'), fs.statSync(file).size, fs.statSync('/tmp/rlf-a').isDirectory());
fs.renameSync(file, '/tmp/rlf-a/c.txt');
console.log(fs.readdirSync('/tmp/rlf-a').sort());
fs.unlinkSync('/tmp/rlf-a/c.txt');
fs.rmSync('/tmp/rlf-a', { recursive: true });
try {
  fs.readFileSync('/tmp/rlf-none.txt');
} catch (error) {
  console.log(error.code, error.message);
}
fs.promises.writeFile('/tmp/rlf-p', 'p').then(() => fs.promises.readFile('/tmp/rlf-p', 'utf8')).then((text) => { console.log(text); fs.unlinkSync('/tmp/rlf-p'); });
