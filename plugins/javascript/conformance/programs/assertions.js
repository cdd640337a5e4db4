const assert = require('assert');
assert.strictEqual(1, 1);
assert.deepStrictEqual({ a: [1, { b: new Map([[1, new Set([2])]]) }] }, { a: [1, { b: new Map([[1, new Set([2])]]) }] });
assert.deepEqual([1, '2'], ['1', 2]);
assert.throws(() => { throw new TypeError('x'); }, TypeError);
assert.throws(() => { throw new Error('abc'); }, /abc/);
for (const wrong of [() => assert.strictEqual(1, 2), () => assert.equal('a', 'b', 'message'), () => assert.throws(() => {}),
  () => assert.ok(false, 'not ok'), () => assert.notStrictEqual(1, 1), () => assert.deepStrictEqual([1, 2], [1, 3])]) {
  try {
    wrong();
    console.log('passed');
  } catch (error) {
    console.log(error.name, error.code, error.message);
  }
}
