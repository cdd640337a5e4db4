// Runs the programs with the node that runs this, and records what they do as what is expected.
//
//     node record.mjs [NAME..]
//
// Node 20 or newer. What belongs to Node's own inside (frames, the line with its version) is left out.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MARK = '[expected]';
const folder = new URL('programs/', import.meta.url).pathname;
const names = process.argv.slice(2);

/** A value as TOML writes it. */
const quoted = (text) => (text.includes('\n') && !text.includes("'''") && !/[\x00-\x09\x0b-\x1f\x7f]/.test(text)
  ? `'''\n${text}'''`
  : JSON.stringify(text).replaceAll('\x7f', '\\u007f'));

function run(file, stdin) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rlf-')));
  try {
    writeFileSync(join(root, 'main.js'), readFileSync(file));
    const ended = spawnSync(process.execPath, ['--experimental-detect-module', '--no-warnings', 'main.js'], {
      cwd: root, input: stdin, encoding: 'utf8', env: { LANG: 'C.UTF-8' }, timeout: 60_000,
    });
    const clean = (text) => text.replaceAll(`file://${root}/`, '/').replaceAll(`${root}/`, '/')
      .split('\n').filter((line) => !/^\s+at .*node:/.test(line)).join('\n')
      .replace(/\n+Node\.js v[\d.]+\n$/, '\n');
    return { code: ended.status, stdout: clean(ended.stdout), stderr: clean(ended.stderr) };
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
  const stdin = /^stdin = (".*")$/m.exec(kept);
  const { code, stdout, stderr } = run(join(folder, file), stdin ? JSON.parse(stdin[1]) : '');
  const after = `${kept}${MARK}\nexit-code = ${code}\nstdout = ${quoted(stdout)}\nstderr = ${quoted(stderr)}\n`;
  if (after !== before) {
    writeFileSync(path, after);
    if (before !== '') console.log(`${name}: recorded anew`);
  }
}
