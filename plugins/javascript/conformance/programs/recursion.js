function deep(n) {
  return deep(n + 1) + 1;
}
try {
  deep(0);
} catch (error) {
  console.log(error instanceof RangeError, error.message);
}
const list = [];
list.push(list);
console.log(list);
