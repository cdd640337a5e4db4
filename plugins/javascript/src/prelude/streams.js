'use strict';
// Standard streams.

const EventEmitter = require('events');
const { Buffer } = require('buffer');
const { nextTick, api } = require('internal/timers');
const fs = require('fs');

class Output extends EventEmitter {
  constructor(fd) {
    super();
    this.fd = fd;
    this.isTTY = false;
    this.writable = true;
    this.columns = undefined;
  }

  write(data, encoding, callback) {
    if (typeof encoding === 'function') [encoding, callback] = [undefined, encoding];
    if (typeof data === 'string') native.write(this.fd, encoding && encoding !== 'utf8' ? Uint8Array.from(Buffer.from(data, encoding)) : data.toWellFormed());
    else if (ArrayBuffer.isView(data)) native.write(this.fd, new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice());
    else {
      const { inspect } = require('internal/inspect');
      throw require('internal/errors').coded(TypeError, 'ERR_INVALID_ARG_TYPE',
        `The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${
          data === null || data === undefined ? data : `type ${typeof data} (${inspect(data)})`}`);
    }
    if (callback) nextTick(callback, null);
    return true;
  }

  end(data, ...rest) {
    if (data !== undefined && typeof data !== 'function') this.write(data, ...rest);
    nextTick(() => this.emit('finish'));
    return this;
  }

  cork() {}
  uncork() {}
}

/** Standard input: all of it, once somebody listens. */
class Input extends EventEmitter {
  #encoding;
  #begun = false;
  #rest = null;
  fd = 0;
  isTTY = false;
  readable = true;

  setEncoding(encoding) {
    this.#encoding = encoding;
    return this;
  }

  on(name, listener) {
    super.on(name, listener);
    if (name === 'data' || name === 'readable' || name === 'end') this.#begin(name === 'readable');
    return this;
  }

  #take() {
    const bytes = fs.readFileSync(0);
    return bytes.length === 0 ? null : this.#encoding ? bytes.toString(this.#encoding) : bytes;
  }

  #begin(readable) {
    if (this.#begun) return;
    this.#begun = true;
    api.setImmediate(() => {
      const data = this.#take();
      if (readable) {
        this.#rest = data;
        this.emit('readable');
        if (data !== null) this.emit('readable');
      } else if (data !== null) this.emit('data', data);
      this.readable = false;
      this.emit('end');
      this.emit('close');
    });
  }

  read() {
    const data = this.#rest;
    this.#rest = null;
    return data;
  }

  pipe(target) {
    this.on('data', (data) => target.write(data));
    this.on('end', () => { if (!(target instanceof Output)) target.end?.(); });
    return target;
  }

  async* [Symbol.asyncIterator]() {
    this.#begun = true;
    const data = this.#take();
    if (data !== null) yield data;
  }

  resume() { this.#begin(false); return this; }
  pause() { return this; }
  ref() { return this; }
  unref() { return this; }
  setRawMode() { return this; }
}

module.exports = { stdout: new Output(1), stderr: new Output(2), stdin: new Input() };
