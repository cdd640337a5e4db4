const text = require('fs').readFileSync(0, 'utf8');
const [count, ...rest] = text.trim().split('\n');
console.log(Number(count), rest.map(Number).reduce((a, b) => a + b, 0));
