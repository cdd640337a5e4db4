'use strict';

const { inspect, format, formatWithOptions, kinds } = require('internal/inspect');

const promisified = Symbol.for('nodejs.util.promisify.custom');

class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(text = '') { return native.encode(String(text).toWellFormed()); }
  encodeInto(text, target) {
    const bytes = this.encode(text).subarray(0, target.length);
    target.set(bytes);
    return { read: text.length, written: bytes.length };
  }
}

class TextDecoder {
  #fatal;
  #keepMark;
  constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`The "${label}" encoding is not supported`);
    this.#fatal = fatal;
    this.#keepMark = ignoreBOM;
  }

  get encoding() { return 'utf-8'; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#keepMark; }

  decode(data = new Uint8Array()) {
    const bytes = data instanceof ArrayBuffer
      ? new Uint8Array(data)
      : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const text = native.decode(bytes, this.#fatal);
    if (text === null) throw new TypeError('The encoded data was not valid for encoding utf-8');
    return !this.#keepMark && text.startsWith('\ufeff') ? text.slice(1) : text;
  }
}

module.exports = {
  inspect,
  format,
  formatWithOptions,
  TextEncoder,
  TextDecoder,
  inherits(Class, Parent) {
    Object.defineProperty(Class, 'super_', { value: Parent, writable: true, configurable: true });
    Object.setPrototypeOf(Class.prototype, Parent.prototype);
  },
  promisify(original) {
    if (original[promisified]) return original[promisified];
    const promising = function promising(...values) {
      return new Promise((resolve, reject) => {
        original.call(this, ...values, (error, result) => (error ? reject(error) : resolve(result)));
      });
    };
    return Object.defineProperties(promising, Object.getOwnPropertyDescriptors(original));
  },
  callbackify: (original) => function called(...values) {
    const callback = values.pop();
    original.apply(this, values).then(
      (result) => { queueMicrotask(() => callback(null, result)); },
      (error) => { queueMicrotask(() => callback(error)); },
    );
  },
  deprecate: (original) => original,
  isDeepStrictEqual: (a, b) => require('assert').isDeepEqual(a, b, true),
  stripVTControlCharacters: (text) => String(text).replace(/\u001b\[[0-9;]*[A-Za-z]/g, ''),
  toUSVString: (text) => String(text).toWellFormed(),
  isArray: Array.isArray,
  types: {
    isMap: kinds.map,
    isSet: kinds.set,
    isDate: kinds.date,
    isRegExp: kinds.regexp,
    isPromise: kinds.promise,
    isNativeError: (value) => value instanceof Error,
    isProxy: (value) => native.proxyTarget(Object(value)) !== undefined,
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView),
    isUint8Array: (value) => value instanceof Uint8Array,
    isArrayBuffer: (value) => value instanceof ArrayBuffer,
    isWeakMap: (value) => value instanceof WeakMap,
    isWeakSet: (value) => value instanceof WeakSet,
    isAsyncFunction: (value) => Object.prototype.toString.call(value) === '[object AsyncFunction]',
    isGeneratorFunction: (value) => /GeneratorFunction\]$/.test(Object.prototype.toString.call(value)),
    isBoxedPrimitive: (value) => [Number, String, Boolean, BigInt, Symbol].some((Class) => value instanceof Class),
  },
};
module.exports.promisify.custom = promisified;
