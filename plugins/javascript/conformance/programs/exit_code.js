process.exitCode = 4;
setTimeout(() => console.log('still runs'), 5);
