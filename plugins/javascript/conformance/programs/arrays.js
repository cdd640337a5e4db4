console.log(Array.from({ length: 120 }, (_, i) => i));
console.log(['apple', 'banana', 'cherry', 'dates', 'eggs', 'figs', 'grapes', 'hello']);
console.log([1.5, -2, 3e10, 0.1], [[1, [2, [3, [4]]]]], [, 1, , 2], new Array(3));
console.log([[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
console.log([3, 1, 2].toSorted(), [1, 2, 3].at(-1), [1, [2, [3]]].flat(Infinity), [10, 9, 1].sort());
