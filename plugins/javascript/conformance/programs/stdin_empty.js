const fs = require('fs');
console.log(JSON.stringify(fs.readFileSync(0, 'utf8')));
process.stdin.on('data', () => console.log('never'));
process.stdin.on('end', () => console.log('end'));
