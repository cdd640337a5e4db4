'use strict';
// Globals, `require`, and what the engine calls.

const errors = require('internal/errors');
const { inspect } = require('internal/inspect');
const path = require('path');
const fs = require('fs');
const process = require('process');
const console = require('console');
const timers = require('internal/timers');
const web = require('internal/web');
const util = require('util');
const { Buffer, atob, btoa } = require('buffer');

const inside = process[Symbol.for('rlf.internal')];

const builtins = {
  assert: require('assert'),
  'assert/strict': require('assert').strict,
  buffer: { Buffer, atob, btoa },
  console,
  crypto: { ...web.crypto, webcrypto: web.crypto, randomBytes: (size) => web.crypto.getRandomValues(Buffer.alloc(size)) },
  events: require('events'),
  fs,
  'fs/promises': fs.promises,
  os: require('os'),
  path,
  'path/posix': path,
  perf_hooks: { performance: web.performance },
  process,
  readline: require('readline'),
  'readline/promises': require('readline').promises,
  timers: timers.api,
  'timers/promises': {
    setTimeout: (delay, value) => new Promise((resolve) => { timers.api.setTimeout(resolve, delay, value); }),
    setImmediate: (value) => new Promise((resolve) => { timers.api.setImmediate(resolve, value); }),
  },
  url: { URLSearchParams: web.URLSearchParams, pathToFileURL: (file) => ({ href: `file://${file}`, pathname: file, protocol: 'file:' }), fileURLToPath: (url) => String(url.pathname ?? url).replace(/^file:\/\//, '') },
  util,
};

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** What was thrown where nobody could catch it. */
const failures = [];

function microtask(callback) {
  if (typeof callback !== 'function') {
    throw errors.coded(TypeError, 'ERR_INVALID_ARG_TYPE',
      `The "callback" argument must be of type function. Received ${inspect(callback)}`);
  }
  Promise.resolve().then(() => {
    try {
      callback();
    } catch (error) {
      failures.push(error);
    }
  });
}
Object.defineProperty(microtask, 'name', { value: 'queueMicrotask' });

define('global', globalThis);
define('process', process);
define('console', console);
define('Buffer', Buffer);
define('queueMicrotask', microtask);
define('atob', atob);
define('btoa', btoa);
define('TextEncoder', util.TextEncoder);
define('TextDecoder', util.TextDecoder);
for (const [name, value] of Object.entries(timers.api)) define(name, value);
for (const [name, value] of Object.entries(web)) define(name, value);
Object.defineProperty(Math, 'random', { value: function random() { return native.random(); }, writable: true, configurable: true });

/** Modules by file, as soon as they begin to run. */
const cache = Object.create(null);

function bare(name) {
  return name.startsWith('node:') ? name.slice(5) : name;
}

function missing(name, from) {
  const error = new Error(`Cannot find module '${name}'\nRequire stack:\n- ${from}`);
  error.code = 'MODULE_NOT_FOUND';
  error.requireStack = [from];
  return error;
}

/** The file that `name` is from `folder`, or undefined. */
function find(name, folder) {
  const target = path.resolve(folder, name);
  for (const end of ['', '.js', '.json', '.cjs', '.mjs', '/index.js', '/index.json']) {
    if (native.size(target + end) >= 0) return target + end;
  }
  return undefined;
}

class Module {
  exports = {};
  children = [];
  loaded = false;
  constructor(id, parent) {
    this.id = id;
    this.filename = id;
    this.path = path.dirname(id);
    this.parent = parent;
    this.paths = [];
  }
}

function requireFrom(parent) {
  function require(name) {
    if (typeof name !== 'string') {
      throw errors.coded(TypeError, 'ERR_INVALID_ARG_TYPE', `The "id" argument must be of type string. Received ${inspect(name)}`);
    }
    const compiled = native.compiled(name);
    if (compiled !== undefined) return loaded(name, compiled, parent);
    if (Object.hasOwn(builtins, bare(name))) return builtins[bare(name)];
    if (name.startsWith('node:')) throw errors.coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${name}`);
    const file = /^\.{0,2}\//.test(name) || name === '.' || name === '..' ? find(name, parent.path) : undefined;
    if (file === undefined) throw missing(name, parent.filename);
    return loadFile(file, parent);
  }
  require.cache = cache;
  require.main = main;
  require.resolve = (name) => (Object.hasOwn(builtins, bare(name)) ? name : find(name, parent.path) ?? (() => { throw missing(name, parent.filename); })());
  return require;
}

let main;

/** A module that `compile` made: a wrapped function, or what an ES module exports. */
function loaded(name, compiled, parent) {
  const key = `compiled:${name}`;
  if (cache[key]) return cache[key].exports;
  const file = path.resolve('/', /\.[mc]?js$/.test(name) ? name : `${name}.js`);
  const module = new Module(file, parent);
  cache[key] = module;
  if (typeof compiled === 'function') start(compiled, module, key);
  else module.exports = compiled;
  module.loaded = true;
  return module.exports;
}

function loadFile(file, parent) {
  if (cache[file]) return cache[file].exports;
  const source = fs.readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  const module = new Module(file, parent);
  cache[file] = module;
  if (file.endsWith('.json')) {
    try {
      module.exports = JSON.parse(source);
    } catch (error) {
      delete cache[file];
      error.message = `${file}: ${error.message}`;
      throw error;
    }
  } else start(wrap(source, file), module, file);
  module.loaded = true;
  return module.exports;
}

function hashbang(source) {
  return source.startsWith('#!') ? `//${source.slice(2)}` : source;
}

/** The function that a CommonJS module's text is the body of. */
function wrap(source, file) {
  source = hashbang(source);
  errors.remember(file, source);
  return native.script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, file);
}

function start(wrapped, module, key) {
  // So it is called in a stack trace.
  Object.defineProperty(wrapped, 'name', { value: 'Object.<anonymous>' });
  try {
    wrapped.call(module.exports, module.exports, requireFrom(module), module, module.filename, module.path);
  } catch (error) {
    delete cache[key];
    throw error;
  }
}

const isModule = /^\s*(?:import\b\s*(?:[\w{*'"$]|\()|export\b)/m;
const awaits = /\bawait\b/;

/** Promises that were rejected and have nobody who listens, in order. */
const rejected = new Map();
/** Errors that came out of promises. */
const unheard = new WeakSet();
/** The program's own promise, where it is an ES module. */
let whole;

function text(value) {
  return value instanceof Error ? fatalText(value) : inspect(value);
}

function fatalText(error) {
  let shown = inspect(error);
  if (shown.startsWith('[') && shown.endsWith(']') && !shown.includes('\n')) shown = shown.slice(1, -1);
  return shown;
}

/** Where an error was made, as Node shows it: the line, and a mark below it. */
function excerpt(error, promised) {
  const frame = errors.framesOf(error)?.find((each) => each.file !== undefined);
  const line = frame && errors.linesOf(frame.file)?.[frame.line - 1];
  if (line === undefined) return '';
  const thrown = promised ? -1 : line.lastIndexOf('throw ', frame.column - 1);
  const at = thrown >= 0 ? thrown : Math.max(0, Math.min(frame.column - 1, line.length));
  const indent = line.slice(0, at).replace(/[^\t]/g, ' ');
  const mark = frame.width === 0 ? '' : `${indent}${'^'.repeat(frame.width ?? 1)}`;
  return `${frame.file}:${frame.line}\n${line}\n${mark}\n\n`;
}

let requireMain;

/** What begins a run of cells. */
function notebook() {
  if (main) return;
  main = new Module('/notebook.js', null);
  inside.begin();
  process.argv = [process.execPath];
  requireMain = requireFrom(main);
  define('require', requireMain);
  define('module', main);
  define('exports', main.exports);
  define('display', (value) => { displays.push(...bundle(value, true)); });
}

const displays = [];
const jupyter = Symbol.for('Jupyter.display');

/** Media types and texts of a value that knows how it is shown; a plain text for `display` of any other. */
function bundle(value, any) {
  const own = value !== null && (typeof value === 'object' || typeof value === 'function') ? value[jupyter] : undefined;
  if (typeof own === 'function') {
    return Object.entries(own.call(value)).map(([type, data]) => [type, typeof data === 'string' ? data : JSON.stringify(data)]);
  }
  return any ? [['text/plain', typeof value === 'string' ? value : inspect(value)]] : [];
}

module.exports = {
  isBuiltin: (name) => Object.hasOwn(builtins, bare(name)),

  /** For `import` of what is no ES module. */
  require: (name) => {
    main ??= new Module('/main.js', null);
    const compiled = native.compiled(name);
    if (compiled !== undefined) return loaded(name, compiled, main);
    return name.startsWith('node:') ? builtins[bare(name)] : loadFile(name, main);
  },

  main(source, name, rest) {
    const file = path.resolve('/', name);
    source = hashbang(source.replace(/^\ufeff/, ''));
    main = new Module(file, null);
    main.id = '.';
    cache[file] = main;
    inside.begin();
    process.argv = [process.execPath, file, ...rest];
    let wrapped;
    let failure;
    if (!file.endsWith('.mjs')) {
      try {
        wrapped = wrap(source, file);
      } catch (error) {
        failure = { error };
      }
    }
    if (wrapped) {
      native.started();
      start(wrapped, main, file);
      main.loaded = true;
      return;
    }
    // What a wrapped text cannot be, an ES module may: `import`, `export` and `await` outside functions.
    const maybe = failure === undefined || isModule.test(source) || awaits.test(source);
    if (!maybe) throw failure.error;
    errors.remember(file, source, 0);
    try {
      native.declares(source, file);
    } catch (error) {
      if (failure === undefined || isModule.test(source)) throw error;
      errors.remember(file, source);
      throw failure.error;
    }
    native.started();
    whole = native.module(source, file);
  },

  remember: (file, source, offset) => errors.remember(file, source, offset),
  ticks: timers.runTicks,
  turn: timers.turn,

  rejection(promise, reason, handled) {
    if (handled) rejected.delete(promise);
    else rejected.set(promise, reason);
  },

  /** Throws what nobody caught. */
  unhandled() {
    if (failures.length > 0) throw failures.shift();
    for (const [promise, reason] of rejected) {
      rejected.delete(promise);
      if (process.listenerCount('unhandledRejection') > 0) process.emit('unhandledRejection', reason, promise);
      else if (reason instanceof Error || promise === whole) {
        if (reason instanceof Error) unheard.add(reason);
        throw reason;
      } else {
        throw errors.coded(Error, 'ERR_UNHANDLED_REJECTION', 'This error originated either by throwing inside of an async function '
          + 'without a catch block, or by rejecting a promise which was not handled with .catch(). '
          + `The promise rejected with the reason "${typeof reason === 'string' ? reason : inspect(reason)}".`);
      }
    }
  },

  /** Whether somebody else deals with it. */
  uncaught(error) {
    if (process.listenerCount('uncaughtException') === 0) return false;
    process.emit('uncaughtException', error, 'uncaughtException');
    return true;
  },

  /** An uncaught error as kind, message and traceback; printed too, if asked. */
  fatal(error, print) {
    const isError = error instanceof Error;
    let own = isError ? fatalText(error) : `Uncaught:\n${inspect(error)}`;
    // Nothing of the program was on the stack when it did not parse.
    if (error instanceof SyntaxError && errors.framesOf(error)?.length === 1) own = own.replace(/\n    at [^\n]*$/, '');
    const traceback = `${isError ? excerpt(error, unheard.has(error)) : ''}${own}\n`;
    if (print) {
      native.write(2, traceback.toWellFormed());
      inside.end(1);
    }
    const kind = isError ? String(error.name ?? error.constructor?.name ?? 'Error') : typeof error;
    const message = isError ? String(error.message) : inspect(error);
    return [kind, message, traceback].map((part) => part.toWellFormed());
  },

  beforeExit() {
    const before = process.listenerCount('beforeExit');
    if (before > 0 && !module.exports.over) {
      process.emit('beforeExit', process.exitCode ?? 0);
      if (timers.pending()) return true;
      module.exports.over = true;
    }
    return false;
  },

  exitCode() {
    if (whole !== undefined && process.exitCode === undefined && native.promiseState(whole)[0] === 'pending') {
      native.write(2, 'Warning: Detected unsettled top-level await\n');
      process.exitCode = 13;
    }
    return inside.end();
  },

  /** What the modules of a plugin are given. */
  native,

  /** What begins a plugin. */
  plugin() {
    main = new Module('/plugin.js', null);
    inside.begin();
    process.argv = [process.execPath];
  },

  cell(source, name) {
    notebook();
    errors.remember(name, source, 0);
  },

  /** A cell that fails tells it by its promise. */
  watch(promise) {
    promise.then(undefined, () => {});
  },

  value(value) {
    if (value === undefined) return undefined;
    displays.push(...bundle(value, false));
    return inspect(value).toWellFormed();
  },

  displays: () => displays.splice(0).map((pair) => pair.map((part) => part.toWellFormed())),
};
