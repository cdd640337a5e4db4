console.log('a\nb', ['a\nb', "it's", 'say "hi"', `both ' and "`, '\u0000\u001b']);
console.log('ß'.toUpperCase(), 'a-b-c'.replaceAll('-', '+'), 'abc'.at(-1), 'x'.padStart(3, 'ab'), [...'héé'].length, '𝒳'.length);
console.log('The quick brown fox'.split(' ').map((w) => w[0]).join(''), /(?<y>\d{4})/.exec('in 2024').groups.y);
console.log('a1b22'.match(/\d+/g), 'x'.localeCompare('y'), 'tEST'.charAt(0).toUpperCase());
console.log({ text: 'line one\nline two that is a good deal longer than one line of eighty columns can hold, really' });
