const person = { name: 'Ada', born: 1815, tags: ['maths', 'engines'], address: { city: 'London', where: { x: 1, y: { z: 2 } } } };
console.log(person);
person.self = person;
console.log(person);
console.log({ 'a-b': 1, 2: 'two', f() {}, g: () => 1, get h() { return 1; }, set h(_) {}, [Symbol('key')]: 'value' });
console.log({}, [], { e: {} }, { a: [] }, Object.create(null), [undefined, null], { u: undefined });
console.log([{ id: 1, name: 'Alice', email: 'alice@example.com' }, { id: 2, name: 'Bob', email: 'bob@example.com' }]);
