'use strict';
// Lines of an input: for programs that read standard input as contests have it.

const EventEmitter = require('events');
const process = require('process');

class Interface extends EventEmitter {
  #lines;
  #closed = false;
  #input;
  #output;
  #flowing = false;
  #prompt;

  constructor({ input = process.stdin, output, prompt = '> ' } = {}) {
    super();
    this.#input = input;
    this.#output = output;
    this.#prompt = prompt;
  }

  #load() {
    if (this.#lines) return;
    const fs = require('fs');
    const text = this.#input === process.stdin ? fs.readFileSync(0, 'utf8') : String(this.#input?.read?.() ?? '');
    this.#lines = text.split(/\r\n|\n|\r/);
    if (this.#lines.at(-1) === '') this.#lines.pop();
  }

  #flow() {
    if (this.#flowing) return;
    this.#flowing = true;
    const { api } = require('internal/timers');
    api.setImmediate(() => {
      this.#load();
      while (this.#lines.length > 0 && !this.#closed && this.listenerCount('line') > 0) this.emit('line', this.#lines.shift());
      if (this.listenerCount('line') > 0 || this.#lines.length === 0) this.close();
      this.#flowing = false;
    });
  }

  on(name, listener) {
    super.on(name, listener);
    if (name === 'line' || name === 'close') this.#flow();
    return this;
  }

  question(query, options, callback) {
    const answer = typeof options === 'function' ? options : callback;
    this.#output?.write(query);
    const { api } = require('internal/timers');
    api.setImmediate(() => {
      this.#load();
      if (this.#lines.length > 0) answer(this.#lines.shift());
      else this.close();
    });
  }

  setPrompt(prompt) { this.#prompt = prompt; }
  prompt() { this.#output?.write(this.#prompt); this.#flow(); }
  write() {}
  pause() { return this; }
  resume() { return this; }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.emit('close');
  }

  async* [Symbol.asyncIterator]() {
    this.#flowing = true;
    this.#load();
    while (this.#lines.length > 0 && !this.#closed) yield this.#lines.shift();
    this.close();
  }
}

class Promising extends Interface {
  question(query) { return new Promise((resolve) => { super.question(query, resolve); }); }
}

module.exports = {
  Interface,
  createInterface: (input, output) => new Interface(input?.input || input?.output ? input : { input, output }),
  clearLine: () => true,
  cursorTo: () => true,
  promises: { Interface: Promising, createInterface: (options) => new Promising(options) },
};
