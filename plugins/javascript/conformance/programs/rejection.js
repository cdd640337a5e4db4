async function fail() {
  throw new Error('nobody listens');
}
setTimeout(() => console.log('never'), 10);
fail();
console.log('main ends');
