console.log(process.argv.length, process.argv.slice(2));
