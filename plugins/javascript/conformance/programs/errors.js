class ValidationError extends Error {
  constructor(message, field) {
    super(message);
    this.name = 'ValidationError';
    this.field = field;
  }
}
try {
  throw new ValidationError('bad value', 'age');
} catch (error) {
  console.log(`${error}`, error.field, error instanceof ValidationError, error instanceof Error);
  console.log(error.stack.split('\n')[0]);
}
const wrong = [() => null.x, () => undefined.y.z, () => { const o = {}; o.missing(); }, () => { const c = 1; c = 2; },
  () => notThere, () => { early; let early = 1; }, () => new Array(-1), () => 1n + 1];
for (const each of wrong) {
  try {
    each();
  } catch (error) {
    console.log(`${error.name}: ${error.message}`);
  }
}
function recurse() { return recurse() + 1; }
try { recurse(); } catch (error) { console.log(error instanceof RangeError, error.message); }
console.log(new Error('with cause', { cause: 'why' }).cause);
