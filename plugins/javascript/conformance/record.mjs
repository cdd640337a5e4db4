// Runs the programs with the node that runs this, and records what they do as what is expected.
//
//     node record.mjs [NAME..]
//
// Node 20 or newer. What belongs to Node's own inside (frames, the line with its version) is left out.

import { spawnSync } from 'node:child_process';
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const MARK = '[expected]';
const folder = new URL('programs/', import.meta.url).pathname;
const names = process.argv.slice(2);

/** A value as TOML writes it. */
const quoted = (text) => (text.includes('\n') && !text.includes("'''") && !/[\x00-\x09\x0b-\x1f\x7f]/.test(text)
  ? `'''\n${text}'''`
  : JSON.stringify(text).replaceAll('\x7f', '\\u007f'));

/** What a case says before its mark. Of TOML only what is also JSON: a text, a list or, in `[files]`, a name and a text in a line. */
function given(text) {
  const value = (key) => JSON.parse(new RegExp(`^${key} = (.*)$`, 'm').exec(text)?.[1] ?? 'null');
  const files = /^\[files\]\n((?:".*\n)*)/m.exec(text)?.[1].trimEnd().split('\n') ?? [];
  return {
    stdin: value('stdin') ?? '',
    arguments: value('arguments') ?? ['main.js'],
    fetch: value('fetch') ?? [],
    files: files.map((line) => /^(".*?") = (".*")$/.exec(line).slice(1).map((part) => JSON.parse(part))),
  };
}

function run(file, { stdin, arguments: [, ...rest], fetch, files }) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rlf-')));
  try {
    for (const [path, text] of files) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    writeFileSync(join(root, 'main.js'), readFileSync(file));
    const ended = spawnSync(process.execPath, ['--experimental-detect-module', '--no-warnings', 'main.js', ...rest], {
      cwd: root, input: stdin, encoding: 'utf8', env: { LANG: 'C.UTF-8' }, timeout: 60_000,
    });
    const clean = (text) => text.replaceAll(`file://${root}/`, '/').replaceAll(`${root}/`, '/')
      .split('\n').filter((line) => !/^\s+at .*node:/.test(line)).join('\n')
      .replace(/\n+Node\.js v[\d.]+\n$/, '\n');
    const left = fetch.filter((path) => statSync(join(root, path), { throwIfNoEntry: false })?.isFile());
    const fetched = left.map((path) => [path, readFileSync(join(root, path), 'utf8')]);
    return { fetched, code: ended.status, stdout: clean(ended.stdout), stderr: clean(ended.stderr) };
  } finally {
    rmSync(root, { recursive: true });
  }
}

for (const file of readdirSync(folder).filter((name) => name.endsWith('.js')).sort()) {
  const name = file.slice(0, -3);
  if (names.length > 0 && !names.includes(name)) continue;
  const path = join(folder, `${name}.toml`);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  if (/^native = false$/m.test(before)) continue;
  const at = before.indexOf(MARK);
  const kept = at < 0 ? before : before.slice(0, at);
  const { code, stdout, stderr, fetched } = run(join(folder, file), given(kept));
  const table = fetched.map(([path, text]) => `${JSON.stringify(path)} = ${quoted(text)}\n`).join('');
  const after = `${kept}${MARK}\nexit-code = ${code}\nstdout = ${quoted(stdout)}\nstderr = ${quoted(stderr)}\n`
    + (table === '' ? '' : `\n[expected.files]\n${table}`);
  if (after !== before) {
    writeFileSync(path, after);
    if (before !== '') console.log(`${name}: recorded anew`);
  }
}
