const { strictEqual } = require('node:assert');
const add = (a, b) => a - b;
strictEqual(add(2, 2), 4, 'add is wrong');
