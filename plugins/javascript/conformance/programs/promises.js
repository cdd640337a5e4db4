const wait = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));
async function main() {
  console.log(await Promise.all([wait(30, 'a'), wait(10, 'b'), 3]));
  console.log(await Promise.race([wait(30, 'slow'), wait(10, 'fast')]));
  console.log(await Promise.allSettled([wait(1, 1), Promise.reject(new RangeError('no'))]).then((all) => all.map((each) => each.status)));
  console.log(await Promise.any([Promise.reject(1), wait(5, 'any')]));
  try {
    await Promise.reject(new TypeError('caught'));
  } catch (error) {
    console.log(error.name, error.message);
  }
  console.log(Promise.resolve(4), new Promise(() => {}));
}
main().finally(() => console.log('finally'));
