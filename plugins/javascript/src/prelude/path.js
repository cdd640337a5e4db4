'use strict';
// POSIX paths.

const { coded } = require('internal/errors');

function check(path, name) {
  if (typeof path !== 'string') {
    const { inspect } = require('internal/inspect');
    const got = path === null || path === undefined ? String(path) : `type ${typeof path} (${inspect(path)})`;
    throw coded(TypeError, 'ERR_INVALID_ARG_TYPE', `The "${name}" argument must be of type string. Received ${got}`);
  }
}

function collapse(path, absolute) {
  const kept = [];
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment !== '..') kept.push(segment);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!absolute) kept.push('..');
  }
  return kept.join('/');
}

const path = {
  sep: '/',
  delimiter: ':',
  normalize(text) {
    check(text, 'path');
    if (text === '') return '.';
    const absolute = text.startsWith('/');
    let out = collapse(text, absolute);
    if (out === '' && !absolute) out = '.';
    if (out !== '' && text.endsWith('/')) out += '/';
    return absolute ? `/${out}` : out;
  },
  isAbsolute(text) {
    check(text, 'path');
    return text.startsWith('/');
  },
  join(...parts) {
    parts.forEach((part) => check(part, 'path'));
    return path.normalize(parts.filter((part) => part !== '').join('/'));
  },
  resolve(...parts) {
    parts.forEach((part) => check(part, 'paths[0]'));
    let whole = '';
    for (const part of parts.toReversed()) {
      if (part === '') continue;
      whole = whole === '' ? part : `${part}/${whole}`;
      if (part.startsWith('/')) break;
    }
    return `/${collapse(whole, true)}`;
  },
  relative(from, to) {
    const [a, b] = [from, to].map((each) => path.resolve(each).split('/').filter(Boolean));
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) same += 1;
    return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('/');
  },
  dirname(text) {
    check(text, 'path');
    const bare = text.replace(/(?<=.)\/+$/s, '');
    const at = bare.lastIndexOf('/');
    if (at < 0) return '.';
    return at === 0 ? '/' : bare.slice(0, at).replace(/(?<=.)\/+$/s, '');
  },
  basename(text, suffix) {
    check(text, 'path');
    const base = text.replace(/\/+$/, '').split('/').at(-1);
    return suffix && base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
  },
  extname(text) {
    const base = path.basename(text);
    const at = base.lastIndexOf('.');
    return at <= 0 || base === '..' ? '' : base.slice(at);
  },
  parse(text) {
    check(text, 'path');
    const root = text.startsWith('/') ? '/' : '';
    const base = path.basename(text);
    const ext = path.extname(base);
    let dir = path.dirname(text);
    if (dir === '.' && !text.startsWith('.')) dir = '';
    return { root, dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
  },
  format({ root = '', dir, base, name = '', ext = '' }) {
    const file = base ?? name + (ext && !ext.startsWith('.') ? `.${ext}` : ext);
    if (!dir) return root + file;
    return dir === root ? dir + file : `${dir}/${file}`;
  },
  toNamespacedPath: (text) => text,
};
path.posix = path;

module.exports = path;
