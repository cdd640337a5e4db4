(async () => {
  let sum = 0;
  const readline = require('readline').createInterface({ input: process.stdin });
  for await (const line of readline) sum += line.split(/\s+/).map(Number).reduce((a, b) => a + b, 0);
  console.log(sum);
})();
