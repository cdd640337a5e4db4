const fs = require('fs');
console.log(fs.readFileSync('in.txt', 'utf8').split('\n').length, fs.readdirSync('data').sort());
console.log(require('./data/numbers.json').reduce((a, b) => a + b), require('./lib/add')(1, 2));
console.log(fs.readFileSync('data/ü.txt', 'utf8'), fs.readFileSync('data/ü.txt').length);
fs.promises.readFile('./in.txt', { encoding: 'utf8' }).then((text) => console.log(text.trimEnd()));
