const fs = require('fs');
try {
  fs.writeFileSync('large', 'x'.repeat(100_000));
} catch (error) {
  console.log(error.code);
}
fs.writeFileSync('small', 'x'.repeat(1_000));
console.log(fs.statSync('small').size);
