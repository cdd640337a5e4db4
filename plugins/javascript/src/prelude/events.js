'use strict';

const { coded } = require('internal/errors');

class EventEmitter {
  #listeners = new Map();

  #add(name, listener, first) {
    if (typeof listener !== 'function') {
      throw coded(TypeError, 'ERR_INVALID_ARG_TYPE',
        `The "listener" argument must be of type function. Received ${listener === null ? 'null' : typeof listener}`);
    }
    if (this.#listeners.has('newListener')) this.emit('newListener', name, listener.listener ?? listener);
    const list = this.#listeners.get(name) ?? [];
    this.#listeners.set(name, first ? [listener, ...list] : [...list, listener]);
    return this;
  }

  #once(name, listener) {
    const wrapped = (...values) => {
      this.removeListener(name, wrapped);
      return listener.apply(this, values);
    };
    wrapped.listener = listener;
    return wrapped;
  }

  on(name, listener) { return this.#add(name, listener, false); }
  addListener(name, listener) { return this.#add(name, listener, false); }
  prependListener(name, listener) { return this.#add(name, listener, true); }
  once(name, listener) { return this.#add(name, this.#once(name, listener), false); }
  prependOnceListener(name, listener) { return this.#add(name, this.#once(name, listener), true); }

  removeListener(name, listener) {
    const list = this.#listeners.get(name) ?? [];
    const at = list.findLastIndex((known) => known === listener || known.listener === listener);
    if (at >= 0) {
      if (list.length === 1) this.#listeners.delete(name);
      else this.#listeners.set(name, list.toSpliced(at, 1));
      if (this.#listeners.has('removeListener')) this.emit('removeListener', name, listener);
    }
    return this;
  }

  off(name, listener) { return this.removeListener(name, listener); }

  removeAllListeners(name) {
    if (name === undefined) this.#listeners.clear();
    else this.#listeners.delete(name);
    return this;
  }

  emit(name, ...values) {
    const list = this.#listeners.get(name);
    if (list === undefined) {
      if (name !== 'error') return false;
      if (values[0] instanceof Error) throw values[0];
      const { inspect } = require('internal/inspect');
      const error = coded(Error, 'ERR_UNHANDLED_ERROR', `Unhandled error. (${inspect(values[0])})`);
      error.context = values[0];
      throw error;
    }
    for (const listener of list) listener.apply(this, values);
    return true;
  }

  listenerCount(name) { return this.#listeners.get(name)?.length ?? 0; }
  listeners(name) { return (this.#listeners.get(name) ?? []).map((known) => known.listener ?? known); }
  rawListeners(name) { return [...(this.#listeners.get(name) ?? [])]; }
  eventNames() { return [...this.#listeners.keys()]; }
  setMaxListeners() { return this; }
  getMaxListeners() { return EventEmitter.defaultMaxListeners; }

  static defaultMaxListeners = 10;

  static once(emitter, name) {
    return new Promise((resolve, reject) => {
      const failed = (error) => {
        emitter.removeListener(name, done);
        reject(error);
      };
      const done = (...values) => {
        emitter.removeListener('error', failed);
        resolve(values);
      };
      emitter.once(name, done);
      if (name !== 'error') emitter.once('error', failed);
    });
  }
}
EventEmitter.EventEmitter = EventEmitter;

module.exports = EventEmitter;
