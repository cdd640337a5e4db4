const line = 'x'.repeat(99);
for (let number = 0; number < 20_000; number += 1) console.log(line);
console.log('the last line');
