process.stdin.setEncoding('utf8');
let text = '';
process.stdin.on('data', (chunk) => { text += chunk; });
process.stdin.on('end', () => {
  const lines = text.split('\n');
  console.log(lines.length, lines[0].length, lines.slice(1, 3));
});
console.log('first');
