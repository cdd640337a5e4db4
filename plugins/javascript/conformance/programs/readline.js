const readline = require('readline');
const lines = readline.createInterface({ input: process.stdin });
let sum = 0;
lines.on('line', (line) => { sum += Number(line); });
lines.on('close', () => console.log('sum', sum));
