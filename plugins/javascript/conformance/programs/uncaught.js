function inner(value) {
  throw new TypeError(`cannot take ${value}`);
}
console.log('before');
inner(7);
console.log('never');
