'use strict';
// Timers over virtual time: the next one is always due, for whoever waits for it sleeps until then.

const { coded } = require('internal/errors');

let sequence = 0;
/** Sorted by time and then by age. */
const timers = [];
const immediates = [];
const ticks = [];

class Timeout {
  constructor(callback, values, delay, repeat) {
    this._idleTimeout = delay;
    this._onTimeout = callback;
    this._repeat = repeat ? delay : null;
    this._destroyed = false;
    Object.defineProperty(this, 'values', { value: values });
    Object.defineProperty(this, 'id', { value: (sequence += 1) });
    Object.defineProperty(this, 'referenced', { value: true, writable: true });
  }

  ref() { this.referenced = true; return this; }
  unref() { this.referenced = false; return this; }
  hasRef() { return this.referenced; }
  refresh() { if (!this._destroyed) { drop(this); schedule(this); } return this; }
  close() { clear(this); return this; }
  [Symbol.toPrimitive]() { return this.id; }
  [Symbol.dispose]() { clear(this); }
}

class Immediate {
  constructor(callback, values) {
    this._onImmediate = callback;
    Object.defineProperty(this, 'values', { value: values });
  }

  ref() { return this; }
  unref() { return this; }
  hasRef() { return true; }
}

function schedule(timer) {
  Object.defineProperty(timer, 'due', { value: native.now() + timer._idleTimeout, configurable: true });
  let at = timers.length;
  while (at > 0 && timers[at - 1].due > timer.due) at -= 1;
  timers.splice(at, 0, timer);
}

function drop(timer) {
  const at = timers.indexOf(timer);
  if (at >= 0) timers.splice(at, 1);
}

function clear(timer) {
  if (typeof timer === 'number' || typeof timer === 'string') timer = timers.find((each) => each.id === Number(timer));
  if (!(timer instanceof Timeout)) return;
  timer._destroyed = true;
  drop(timer);
}

function start(callback, delay, values, repeat) {
  need(callback);
  delay = Number(delay);
  // As in browsers and Node: at least 1 ms, and what does not fit into 31 bits is 1 ms too.
  if (!(delay >= 1 && delay <= 2 ** 31 - 1)) delay = 1;
  const timer = new Timeout(callback, values, Math.trunc(delay), repeat);
  schedule(timer);
  return timer;
}

function need(callback) {
  if (typeof callback === 'function') return;
  const { inspect } = require('internal/inspect');
  throw coded(TypeError, 'ERR_INVALID_ARG_TYPE',
    `The "callback" argument must be of type function. Received ${inspect(callback)}`);
}

const api = {
  setTimeout: (callback, delay, ...values) => start(callback, delay, values, false),
  setInterval: (callback, delay, ...values) => start(callback, delay, values, true),
  setImmediate(callback, ...values) {
    need(callback);
    const immediate = new Immediate(callback, values);
    immediates.push(immediate);
    return immediate;
  },
  clearTimeout: clear,
  clearInterval: clear,
  clearImmediate(immediate) {
    const at = immediates.indexOf(immediate);
    if (at >= 0) immediates.splice(at, 1);
  },
};
for (const [name, value] of Object.entries(api)) Object.defineProperty(value, 'name', { value: name });
Object.defineProperty(api.setTimeout, Symbol.for('nodejs.util.promisify.custom'), {
  value: (delay, value) => new Promise((resolve) => { api.setTimeout(resolve, delay, value); }),
});

/** What `process.nextTick` put off; whether there was any. */
function runTicks() {
  if (ticks.length === 0) return false;
  while (ticks.length > 0) {
    const [callback, values] = ticks.shift();
    callback(...values);
  }
  return true;
}

/** Rounds of immediates: one that is put off by another waits for the next round. */
let round = 0;

/** Runs one task, having slept until it is due; false where none is left that keeps the program alive. */
function turn() {
  if (round > 0 && immediates.length > 0) {
    round -= 1;
    const immediate = immediates.shift();
    immediate._onImmediate(...immediate.values);
    return true;
  }
  round = 0;
  const now = native.now();
  if (timers.length > 0 && (timers[0].due <= now || immediates.length === 0)) {
    if (!timers.some((timer) => timer.referenced)) return false;
    const timer = timers.shift();
    if (timer.due > now) native.sleep(timer.due - now);
    if (timer._repeat !== null) schedule(timer);
    else timer._destroyed = true;
    timer._onTimeout(...timer.values);
    return true;
  }
  if (immediates.length === 0) return false;
  round = immediates.length;
  return turn();
}

module.exports = {
  api,
  runTicks,
  pending: () => ticks.length > 0 || immediates.length > 0 || timers.some((timer) => timer.referenced),
  turn,
  nextTick(callback, ...values) {
    need(callback);
    ticks.push([callback, values]);
  },
};
