const fs = require('fs');
fs.mkdirSync('folder/inner', { recursive: true });
const tries = {
  missing: () => fs.readFileSync('missing.txt'),
  inside: () => fs.writeFileSync('missing/a.txt', 'x'),
  folder: () => fs.readFileSync('folder'),
  full: () => fs.rmdirSync('folder'),
  again: () => fs.mkdirSync('folder'),
  stat: () => fs.statSync('missing'),
  unlink: () => fs.unlinkSync('missing'),
  list: () => fs.readdirSync('missing'),
};
for (const [name, attempt] of Object.entries(tries)) {
  try {
    attempt();
    console.log(name, 'worked');
  } catch (error) {
    console.log(name, error.code, error.syscall, error.message);
  }
}
fs.promises.readFile('missing.txt').catch((error) => console.log(error.code));
fs.readFile('missing.txt', (error, data) => console.log(error.code, data));
