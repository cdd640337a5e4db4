console.log('Hello, world');
console.log(1 + 1, 'two', true, null, undefined, 10n, Symbol('s'), -0, NaN);
