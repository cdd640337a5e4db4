'use strict';
// Globals that Node shares with browsers.

class DOMException extends Error {
  #name;
  constructor(message = '', name = 'Error') {
    super(message);
    this.#name = typeof name === 'string' ? name : name?.name ?? 'Error';
  }

  get name() { return this.#name; }
  get code() { return { DataCloneError: 25, AbortError: 20, InvalidCharacterError: 5, SyntaxError: 12 }[this.#name] ?? 0; }
}

const ERRORS = [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError];

function structuredClone(value) {
  if (arguments.length === 0) throw new TypeError("The \"value\" argument must be specified");
  const done = new Map();
  const refuse = (what) => { throw new DOMException(`${what} could not be cloned.`, 'DataCloneError'); };
  const clone = (each) => {
    if (typeof each === 'symbol') refuse(String(each));
    if (typeof each === 'function') refuse(String(each));
    if (each === null || typeof each !== 'object') return each;
    if (done.has(each)) return done.get(each);
    const keep = (copy) => {
      done.set(each, copy);
      return copy;
    };
    if (Array.isArray(each)) {
      const copy = keep(new Array(each.length));
      for (const key of Object.keys(each)) copy[key] = clone(each[key]);
      return copy;
    }
    if (each instanceof Date) return keep(new Date(each.getTime()));
    if (each instanceof RegExp) return keep(new RegExp(each.source, each.flags));
    if (each instanceof Map) {
      const copy = keep(new Map());
      for (const [key, item] of each) copy.set(clone(key), clone(item));
      return copy;
    }
    if (each instanceof Set) {
      const copy = keep(new Set());
      for (const item of each) copy.add(clone(item));
      return copy;
    }
    if (each instanceof ArrayBuffer) return keep(each.slice(0));
    if (ArrayBuffer.isView(each)) {
      const buffer = clone(each.buffer);
      const Class = each instanceof DataView ? DataView : globalThis[Object.getPrototypeOf(Uint8Array.prototype)[Symbol.toStringTag] ?? Object.prototype.toString.call(each).slice(8, -1)];
      return keep(new Class(buffer, each.byteOffset, each instanceof DataView ? each.byteLength : each.length));
    }
    if (each instanceof Error) {
      const Class = ERRORS.find((known) => known.name === each.name) ?? Error;
      const copy = keep(Object.create(Class.prototype));
      for (const key of ['stack', 'message', 'cause']) {
        if (Object.hasOwn(each, key)) Object.defineProperty(copy, key, { value: key === 'cause' ? clone(each[key]) : String(each[key]), writable: true, configurable: true });
      }
      return copy;
    }
    if ([Number, String, Boolean, BigInt].some((Class) => each instanceof Class)) return keep(Object(each.valueOf()));
    if (each instanceof Promise || each instanceof WeakMap || each instanceof WeakSet) refuse(`#<${each.constructor.name}>`);
    const copy = keep({});
    for (const key of Object.keys(each)) copy[key] = clone(each[key]);
    return copy;
  };
  return clone(value);
}

class Event {
  #prevented = false;
  constructor(type, { cancelable = false } = {}) {
    this.type = String(type);
    this.cancelable = cancelable;
    this.target = null;
  }

  get defaultPrevented() { return this.#prevented; }
  preventDefault() { if (this.cancelable) this.#prevented = true; }
}

class EventTarget {
  #listeners = new Map();
  addEventListener(type, listener, options) {
    const list = this.#listeners.get(type) ?? [];
    if (listener && !list.some((known) => known.listener === listener)) list.push({ listener, once: Boolean(options?.once) });
    this.#listeners.set(type, list);
  }

  removeEventListener(type, listener) {
    this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((known) => known.listener !== listener));
  }

  dispatchEvent(event) {
    event.target = this;
    for (const { listener, once } of [...this.#listeners.get(event.type) ?? []]) {
      if (once) this.removeEventListener(event.type, listener);
      if (typeof listener === 'function') listener.call(this, event);
      else listener.handleEvent(event);
    }
    return !event.defaultPrevented;
  }
}

class AbortSignal extends EventTarget {
  aborted = false;
  reason = undefined;
  onabort = null;
  throwIfAborted() { if (this.aborted) throw this.reason; }
  static abort(reason) {
    const controller = new AbortController();
    controller.abort(reason);
    return controller.signal;
  }

  static timeout(ms) {
    const controller = new AbortController();
    globalThis.setTimeout(() => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms).unref();
    return controller.signal;
  }
}

class AbortController {
  signal = new AbortSignal();
  abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
    if (this.signal.aborted) return;
    this.signal.aborted = true;
    this.signal.reason = reason;
    const event = new Event('abort');
    this.signal.onabort?.(event);
    this.signal.dispatchEvent(event);
  }
}

class URLSearchParams {
  #pairs = [];
  constructor(init = '') {
    const decode = (text) => decodeURIComponent(text.replaceAll('+', ' '));
    if (typeof init === 'string') {
      for (const part of init.replace(/^\?/, '').split('&').filter(Boolean)) {
        const [key, ...value] = part.split('=');
        this.#pairs.push([decode(key), decode(value.join('='))]);
      }
    } else if (init !== null && init !== undefined) {
      this.#pairs = Array.from(typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init), ([key, value]) => [String(key), String(value)]);
    }
  }

  get size() { return this.#pairs.length; }
  get(key) { return this.#pairs.find(([name]) => name === key)?.[1] ?? null; }
  getAll(key) { return this.#pairs.filter(([name]) => name === key).map(([, value]) => value); }
  has(key) { return this.#pairs.some(([name]) => name === key); }
  append(key, value) { this.#pairs.push([String(key), String(value)]); }
  delete(key) { this.#pairs = this.#pairs.filter(([name]) => name !== key); }
  set(key, value) {
    const at = this.#pairs.findIndex(([name]) => name === key);
    if (at < 0) this.append(key, value);
    else {
      this.#pairs[at] = [String(key), String(value)];
      this.#pairs = this.#pairs.filter(([name], index) => name !== key || index === at);
    }
  }

  sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); }
  forEach(callback) { for (const [key, value] of this.#pairs) callback(value, key, this); }
  keys() { return this.#pairs.map(([key]) => key)[Symbol.iterator](); }
  values() { return this.#pairs.map(([, value]) => value)[Symbol.iterator](); }
  entries() { return this.#pairs.map((pair) => [...pair])[Symbol.iterator](); }
  [Symbol.iterator]() { return this.entries(); }
  toString() {
    const encode = (text) => encodeURIComponent(text).replaceAll('%20', '+').replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
    return this.#pairs.map(([key, value]) => `${encode(key)}=${encode(value)}`).join('&');
  }
}

const { performance } = { performance: { now: () => native.now() - performanceOrigin(), timeOrigin: 0, mark() {}, measure() {} } };
let origin;
function performanceOrigin() {
  origin ??= native.now();
  return origin;
}

/** Numbers with English separators: all of `Intl` there is. */
const digits = (number, options = {}) => {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? 'NaN' : number < 0 ? '-∞' : '∞';
  let { minimumFractionDigits: least, maximumFractionDigits: most } = options;
  const percent = options.style === 'percent';
  if (options.style === 'currency') least ??= 2;
  least ??= 0;
  most ??= Math.max(least, options.style === 'currency' ? 2 : percent ? 0 : 3);
  const fixed = Math.abs(percent ? number * 100 : number).toFixed(Math.min(most, 100));
  let [whole, fraction = ''] = fixed.split('.');
  while (fraction.length > least && fraction.endsWith('0')) fraction = fraction.slice(0, -1);
  if (options.useGrouping !== false) whole = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  const symbol = options.style === 'currency' ? { USD: '$', EUR: '€', GBP: '£', JPY: '¥' }[options.currency] ?? `${options.currency} ` : '';
  const text = symbol + (fraction ? `${whole}.${fraction}` : whole) + (percent ? '%' : '');
  return (number < 0 || Object.is(number, -0)) ? `-${text}` : text;
};
Object.defineProperty(Number.prototype, 'toLocaleString', { value: function toLocaleString(_locale, options) { return digits(Number(this), options); }, writable: true, configurable: true });
Object.defineProperty(BigInt.prototype, 'toLocaleString', { value: function toLocaleString() { return this.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ','); }, writable: true, configurable: true });

const crypto = {
  getRandomValues(array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(native.random() * 256);
    return array;
  },
  randomUUID() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  },
  randomInt(low, high) {
    if (high === undefined) [low, high] = [0, low];
    return low + Math.floor(native.random() * (high - low));
  },
};

module.exports = {
  structuredClone, DOMException, Event, EventTarget, AbortController, AbortSignal, URLSearchParams, performance, crypto,
};
