setTimeout(() => console.log('timeout 20'), 20);
setTimeout(() => console.log('timeout 10'), 10);
const every = setInterval(() => { console.log('interval'); clearInterval(every); }, 15);
process.nextTick(() => console.log('tick'));
Promise.resolve().then(() => console.log('promise')).then(() => console.log('promise 2'));
queueMicrotask(() => console.log('microtask'));
(async () => {
  console.log('async begins');
  await null;
  console.log('async goes on');
  for await (const value of (async function* values() { yield 1; yield 2; })()) console.log('value', value);
})();
console.log('main ends');
