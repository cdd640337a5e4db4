const start = performance.now();
setTimeout(() => {
  console.log(performance.now() - start >= 49, Date.now() > 1e12);
}, 50);
const timer = setInterval(() => {
  console.log('tick');
  clearInterval(timer);
}, 10);
console.log(new Date(0).toISOString(), new Date(86_400_000).getUTCDate());
