const tests = require('tests');
const { answer } = require('lib/deep');
console.log(tests.check(4), answer);
