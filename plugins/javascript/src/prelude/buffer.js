'use strict';
// The part of Buffer that programs on files and texts use.

const { coded } = require('internal/errors');
const { inspect } = require('internal/inspect');

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUES = new Map([...ALPHABET].map((char, value) => [char, value]));
VALUES.set('-', 62);
VALUES.set('_', 63);

function toBase64(bytes, url) {
  let out = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const three = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    out += ALPHABET[three >> 18] + ALPHABET[(three >> 12) & 63];
    if (at + 1 < bytes.length) out += ALPHABET[(three >> 6) & 63];
    else if (!url) out += '=';
    if (at + 2 < bytes.length) out += ALPHABET[three & 63];
    else if (!url) out += '=';
  }
  return url ? out.replaceAll('+', '-').replaceAll('/', '_') : out;
}

function fromBase64(text) {
  const out = [];
  let bits = 0;
  let held = 0;
  for (const char of text) {
    if (char === '=') break;
    const value = VALUES.get(char);
    if (value === undefined) continue;
    bits = (bits << 6) | value;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push((bits >> held) & 255);
    }
  }
  return out;
}

const codecs = {
  utf8: [(text) => native.encode(text.toWellFormed()), (bytes) => native.decode(bytes, false)],
  hex: [
    (text) => {
      const out = [];
      for (let at = 0; at + 1 < text.length; at += 2) {
        const pair = text.slice(at, at + 2);
        if (!/^[0-9a-f]{2}$/i.test(pair)) break;
        out.push(Number.parseInt(pair, 16));
      }
      return out;
    },
    (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''),
  ],
  base64: [fromBase64, (bytes) => toBase64(bytes, false)],
  base64url: [fromBase64, (bytes) => toBase64(bytes, true)],
  latin1: [(text) => Array.from(text, (char) => char.charCodeAt(0) & 255), (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')],
  ascii: [(text) => Array.from(text, (char) => char.charCodeAt(0) & 255), (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte & 127)).join('')],
  utf16le: [
    (text) => Array.from({ length: text.length * 2 }, (_, at) => (text.charCodeAt(at >> 1) >> (at % 2 ? 8 : 0)) & 255),
    (bytes) => {
      let out = '';
      for (let at = 0; at + 1 < bytes.length; at += 2) out += String.fromCharCode(bytes[at] | (bytes[at + 1] << 8));
      return out;
    },
  ],
};
Object.assign(codecs, { 'utf-8': codecs.utf8, binary: codecs.latin1, 'utf-16le': codecs.utf16le, ucs2: codecs.utf16le, 'ucs-2': codecs.utf16le });

function codec(encoding) {
  const found = codecs[String(encoding ?? 'utf8').toLowerCase()];
  if (!found) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
  return found;
}

class Buffer extends Uint8Array {
  static from(value, encoding, length) {
    if (typeof value === 'string') return wrap(Uint8Array.from(codec(encoding)[0](value)));
    if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
    if (value?.type === 'Buffer' && Array.isArray(value.data)) return wrap(Uint8Array.from(value.data));
    if (value !== null && typeof value === 'object' && (typeof value.length === 'number' || Symbol.iterator in value)) {
      return wrap(Uint8Array.from(value));
    }
    throw coded(TypeError, 'ERR_INVALID_ARG_TYPE', 'The first argument must be of type string or an instance of Buffer, '
      + `ArrayBuffer, or Array or an Array-like Object. Received ${value === null || value === undefined ? value : `type ${typeof value} (${inspect(value)})`}`);
  }

  static alloc(size, fill, encoding) {
    const buffer = new Buffer(size);
    return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
  }

  static allocUnsafe(size) { return new Buffer(size); }
  static isBuffer(value) { return value instanceof Buffer; }
  static isEncoding(name) { return Object.hasOwn(codecs, String(name).toLowerCase()); }
  static byteLength(value, encoding) { return typeof value === 'string' ? codec(encoding)[0](value).length : value.byteLength; }

  static concat(list, length = list.reduce((sum, each) => sum + each.length, 0)) {
    const out = new Buffer(length);
    let at = 0;
    for (const each of list) {
      if (at >= length) break;
      out.set(each.subarray(0, length - at), at);
      at += each.length;
    }
    return out;
  }

  static compare(a, b) {
    for (let at = 0; at < Math.min(a.length, b.length); at += 1) if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
    return Math.sign(a.length - b.length);
  }

  toString(encoding, start = 0, end = this.length) { return codec(encoding)[1](new Uint8Array(this.subarray(start, end))); }
  toJSON() { return { type: 'Buffer', data: Array.from(this) }; }
  equals(other) { return Buffer.compare(this, other) === 0; }
  compare(other) { return Buffer.compare(this, other); }

  write(text, offset = 0, length = this.length - offset, encoding = 'utf8') {
    if (typeof offset === 'string') [offset, length, encoding] = [0, this.length, offset];
    const bytes = Uint8Array.from(codec(encoding)[0](text)).subarray(0, Math.min(length, this.length - offset));
    this.set(bytes, offset);
    return bytes.length;
  }

  copy(target, at = 0, start = 0, end = this.length) {
    const part = this.subarray(start, Math.min(end, start + target.length - at));
    target.set(part, at);
    return part.length;
  }

  slice(start, end) { return this.subarray(start, end); }

  fill(value, start = 0, end = this.length, encoding = 'utf8') {
    if (typeof value !== 'string') return super.fill(value, start, end);
    const bytes = codec(encoding)[0](value);
    for (let at = start; at < end; at += 1) this[at] = bytes.length ? bytes[(at - start) % bytes.length] : 0;
    return this;
  }

  indexOf(value, from = 0, encoding = 'utf8') {
    if (typeof value === 'number') return super.indexOf(value, from);
    const wanted = typeof value === 'string' ? codec(encoding)[0](value) : value;
    for (let at = from; at + wanted.length <= this.length; at += 1) {
      let same = 0;
      while (same < wanted.length && this[at + same] === wanted[same]) same += 1;
      if (same === wanted.length) return at;
    }
    return -1;
  }

  includes(value, from, encoding) { return this.indexOf(value, from, encoding) >= 0; }

  [inspect.custom]() {
    const shown = Array.from(this.subarray(0, 50), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const left = this.length - 50;
    return `<Buffer${shown && ` ${shown}`}${left > 0 ? ` ... ${left} more byte${left > 1 ? 's' : ''}` : ''}>`;
  }
}

for (const [name, method, size] of [['UInt8', 'Uint8', 1], ['Int8', 'Int8', 1], ['UInt16', 'Uint16', 2], ['Int16', 'Int16', 2],
  ['UInt32', 'Uint32', 4], ['Int32', 'Int32', 4], ['Float', 'Float32', 4], ['Double', 'Float64', 8],
  ['BigInt64', 'BigInt64', 8], ['BigUInt64', 'BigUint64', 8]]) {
  for (const end of size === 1 ? [''] : ['LE', 'BE']) {
    const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    const define = (key, value) => Object.defineProperty(Buffer.prototype, key, { value, writable: true, configurable: true });
    define(`read${name}${end}`, function read(offset = 0) { return view(this)[`get${method}`](offset, end === 'LE'); });
    define(`write${name}${end}`, function write(value, offset = 0) {
      view(this)[`set${method}`](offset, value, end === 'LE');
      return offset + size;
    });
  }
}

function wrap(bytes) {
  return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

module.exports = {
  Buffer,
  wrap,
  atob: (text) => String.fromCharCode(...fromBase64(String(text))),
  btoa: (text) => {
    const bytes = Array.from(String(text), (char) => char.charCodeAt(0));
    if (bytes.some((code) => code > 255)) throw new Error('Invalid character');
    return toBase64(bytes, false);
  },
};
