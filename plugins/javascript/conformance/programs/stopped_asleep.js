console.log('before');
setTimeout(() => console.log('never'), 3_600_000);
