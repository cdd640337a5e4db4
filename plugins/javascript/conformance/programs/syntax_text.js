const name = 'abc;
console.log(name);
