console.log('line one');
process.stdout.write('line two\n');
console.error('to stderr');
for (;;);
