process.on('exit', (code) => console.log('exit', code));
async function leave() {
  try {
    process.exit(3);
  } finally {
    console.log('never');
  }
}
leave();
console.log('never either');
