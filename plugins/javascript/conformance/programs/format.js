console.log('%s is %d years and %i, %f, %j %O %%', 'Bob', 42.5, 42.9, '3.5', { a: 1 }, { b: { c: {} } }, 'extra', { z: 1 });
console.log('100%', 'no directive', '%d');
console.log('%s %s %s', 'only one');
console.log('%c styled', 'color: red');
const util = require('util');
console.log(util.format('%s', [1, { a: 2 }]), util.inspect({ a: { b: { c: { d: 1 } } } }, { depth: 0 }), util.inspect('str'));
console.log(util.inspect({ a: 1, b: [1, 2] }, { compact: false }), util.isDeepStrictEqual({ a: [1] }, { a: [1] }));
