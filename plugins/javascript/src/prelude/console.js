'use strict';

const { inspect, formatWithOptions } = require('internal/inspect');
const { stdout, stderr } = require('internal/streams');

class Console {
  #out;
  #err;
  #indent = '';
  #counts = new Map();
  #timers = new Map();

  constructor(out, err) {
    if (out?.stdout) [out, err] = [out.stdout, out.stderr];
    this.#out = out;
    this.#err = err ?? out;
    // Methods work when they are passed on, as in `list.forEach(console.log)`.
    for (const name of Object.getOwnPropertyNames(Console.prototype)) {
      if (name !== 'constructor') {
        const bound = this[name].bind(this);
        Object.defineProperty(bound, 'name', { value: name });
        Object.defineProperty(this, name, { value: bound, writable: true, configurable: true, enumerable: true });
      }
    }
  }

  #print(stream, values) {
    let text = values.length === 1 && typeof values[0] === 'string' ? values[0] : formatWithOptions(undefined, ...values);
    if (this.#indent !== '') text = this.#indent + text.replaceAll('\n', `\n${this.#indent}`);
    stream.write(`${text}\n`);
  }

  log(...values) { this.#print(this.#out, values); }
  info(...values) { this.#print(this.#out, values); }
  debug(...values) { this.#print(this.#out, values); }
  error(...values) { this.#print(this.#err, values); }
  warn(...values) { this.#print(this.#err, values); }
  dir(value, options) { this.#print(this.#out, [inspect(value, { customInspect: false, ...options })]); }
  dirxml(...values) { this.log(...values); }

  trace(...values) {
    const holder = { name: 'Trace', message: values.length ? formatWithOptions(undefined, ...values) : '' };
    Error.captureStackTrace(holder, this.trace);
    const frames = holder.stack.split('\n').filter((line) => line.startsWith('    at '));
    this.error([`Trace${holder.message && `: ${holder.message}`}`, ...frames].join('\n'));
  }

  assert(truth, ...values) {
    if (truth) return;
    if (typeof values[0] === 'string') this.warn(`Assertion failed: ${values[0]}`, ...values.slice(1));
    else this.warn(values.length ? 'Assertion failed:' : 'Assertion failed', ...values);
  }

  group(...values) {
    if (values.length > 0) this.log(...values);
    this.#indent += '  ';
  }

  groupCollapsed(...values) { this.group(...values); }
  groupEnd() { this.#indent = this.#indent.slice(2); }

  count(label = 'default') {
    const count = (this.#counts.get(`${label}`) ?? 0) + 1;
    this.#counts.set(`${label}`, count);
    this.log(`${label}: ${count}`);
  }

  countReset(label = 'default') { this.#counts.delete(`${label}`); }
  time(label = 'default') { this.#timers.set(`${label}`, native.now()); }
  timeLog(label = 'default', ...values) { this.#lapse(label, values); }
  timeEnd(label = 'default') {
    this.#lapse(label, []);
    this.#timers.delete(`${label}`);
  }

  #lapse(label, values) {
    const begun = this.#timers.get(`${label}`);
    if (begun === undefined) return;
    const ms = native.now() - begun;
    const text = ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
    this.log(`${label}: ${text}`, ...values);
  }

  table(data, columns) {
    if (data === null || typeof data !== 'object') return void this.log(data);
    const rows = [];
    const keys = [];
    let plain = false;
    const map = data instanceof Map;
    const items = map ? [...data].map(([key, value], at) => [at, value, key])
      : data instanceof Set ? [...data].map((value, at) => [at, value])
        : Object.keys(data).map((key) => [key, data[key]]);
    const shown = (value) => inspect(value, { maxArrayLength: 3, breakLength: Infinity, depth: value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 2 ? -1 : 0 });
    for (const [index, value, key] of items) {
      const row = { index: `${index}`, cells: new Map(), key: map ? shown(key) : undefined };
      if (value !== null && typeof value === 'object' && !map) {
        for (const column of columns ?? Object.keys(value)) {
          if (!keys.includes(column)) keys.push(column);
          if (Object.hasOwn(value, column)) row.cells.set(column, shown(value[column]));
        }
      } else {
        plain = true;
        row.value = shown(value);
      }
      rows.push(row);
    }
    const head = [map || data instanceof Set ? '(iteration index)' : '(index)', ...(map ? ['Key'] : []), ...keys, ...(plain ? ['Values'] : [])];
    const body = rows.map((row) => [row.index, ...(map ? [row.key] : []), ...keys.map((key) => row.cells.get(key) ?? ''), ...(plain ? [row.value ?? ''] : [])]);
    const widths = head.map((title, at) => Math.max(title.length, ...body.map((row) => row[at].length)) + 2);
    const line = (left, middle, right) => left + widths.map((width) => '─'.repeat(width)).join(middle) + right;
    const text = (row) => `│${row.map((cell, at) => ` ${cell.padEnd(widths[at] - 1)}`).join('│')}│`;
    this.log([line('┌', '┬', '┐'), text(head), line('├', '┼', '┤'), ...body.map(text), line('└', '┴', '┘')].join('\n'));
    return undefined;
  }
}

const plain = new Console(stdout, stderr);
plain.Console = Console;
const console = Object.create({}, Object.getOwnPropertyDescriptors(plain));
Object.defineProperty(console, Symbol.toStringTag, { value: 'console', configurable: true });
module.exports = console;
