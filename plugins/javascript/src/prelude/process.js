'use strict';

const EventEmitter = require('events');
const { nextTick } = require('internal/timers');
const { stdin, stdout, stderr } = require('internal/streams');
const { coded } = require('internal/errors');
const { inspect } = require('internal/inspect');

let started = 0;
let code;
let exiting = false;

class Process extends EventEmitter {
  title = 'node';
  version = 'v22.0.0';
  versions = { node: '22.0.0', quickjs: '0.16.2' };
  arch = 'wasm32';
  platform = 'linux';
  release = { name: 'node' };
  argv = [];
  execArgv = [];
  execPath = '/usr/local/bin/node';
  env = {};
  pid = 1;
  ppid = 0;
  features = {};
  config = {};
  stdin = stdin;
  stdout = stdout;
  stderr = stderr;
  nextTick = nextTick;

  get exitCode() { return code; }
  set exitCode(value) {
    if (value !== undefined && value !== null && !Number.isInteger(Number(value))) {
      throw coded(TypeError, 'ERR_INVALID_ARG_TYPE', `The "code" argument must be of type number. Received ${inspect(value)}`);
    }
    code = value === undefined || value === null ? undefined : Number(value);
  }

  exit(value) {
    if (value !== undefined) this.exitCode = value;
    if (!exiting) {
      exiting = true;
      this.emit('exit', code ?? 0);
    }
    native.exit(code ?? 0);
  }

  reallyExit(value = 0) { native.exit(value); }
  abort() { native.exit(134); }
  kill() { native.exit(143); }
  cwd() { return '/'; }
  chdir() {}
  umask() { return 0o22; }
  uptime() { return (native.now() - started) / 1000; }
  emitWarning(warning) {
    const text = warning instanceof Error ? `${warning.name}: ${warning.message}` : `Warning: ${warning}`;
    stderr.write(`(node:1) ${text}\n`);
  }

  memoryUsage() { return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }; }
  cpuUsage() { return { user: Math.round(this.uptime() * 1e6), system: 0 }; }
  get [Symbol.toStringTag]() { return 'process'; }
}

const process = new Process();
process.hrtime = Object.assign(function hrtime(since) {
  const now = native.now();
  let [seconds, nanos] = [Math.floor(now / 1000), Math.round((now % 1000) * 1e6)];
  if (since) {
    seconds -= since[0];
    nanos -= since[1];
    if (nanos < 0) {
      seconds -= 1;
      nanos += 1e9;
    }
  }
  return [seconds, nanos];
}, { bigint: () => BigInt(Math.round(native.now() * 1e6)) });

module.exports = process;
Object.defineProperty(process, Symbol.for('rlf.internal'), {
  value: {
    begin() { started = native.now(); },
    /** Told to listeners of `exit` once; what the program set. */
    end(status) {
      if (!exiting) {
        exiting = true;
        if (status !== undefined) code = status;
        process.emit('exit', code ?? 0);
      }
      return code;
    },
  },
});
