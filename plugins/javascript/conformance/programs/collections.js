console.log(new Map([['a', 1], ['b', { c: [1, 2] }]]), new Map(), new Set([1, 'two', [3]]), new Set());
console.log(new WeakMap(), new Uint8Array([1, 2, 3]), new Float64Array(2), new ArrayBuffer(4));
const groups = Map.groupBy ? Map.groupBy([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even')) : new Map([['odd', [1, 3]], ['even', [2]]]);
console.log(groups);
console.log([...new Set([3, 3, 4])], Object.fromEntries(new Map([['x', 1]])), new Map([[new Map([[1, 2]]), new Set([1])]]));
