'use strict';
// Files of the run: in memory, gone with it, `/` the working directory.

const path = require('path');
const { Buffer, wrap } = require('buffer');
const { coded } = require('internal/errors');
const { inspect } = require('internal/inspect');

const MEANING = {
  ENOENT: [-2, 'no such file or directory'],
  EISDIR: [-21, 'illegal operation on a directory'],
  ENOTDIR: [-20, 'not a directory'],
  EEXIST: [-17, 'file already exists'],
  ENOTEMPTY: [-39, 'directory not empty'],
  ENOSPC: [-28, 'no space left on device'],
  EBADF: [-9, 'bad file descriptor'],
};

function failed(code, syscall, name, to) {
  const [errno, text] = MEANING[code];
  const at = name === undefined ? '' : ` '${name}'${to === undefined ? '' : ` -> '${to}'`}`;
  const error = new Error(`${code}: ${text}, ${syscall}${at}`);
  error.errno = errno;
  error.code = code;
  error.syscall = syscall;
  if (name !== undefined) error.path = name;
  if (to !== undefined) error.dest = to;
  return error;
}

/** What the files answer: an error's code is a string that `MEANING` knows. */
function checked(answer, syscall, name, to) {
  if (typeof answer === 'string' && answer in MEANING) throw failed(answer, syscall, name, to);
  return answer;
}

function nameOf(file) {
  if (typeof file === 'string') return file;
  if (file instanceof Uint8Array) return native.decode(file, false);
  if (file?.protocol === 'file:') return decodeURIComponent(file.pathname);
  throw coded(TypeError, 'ERR_INVALID_ARG_TYPE',
    `The "path" argument must be of type string or an instance of Buffer or URL. Received ${inspect(file)}`);
}

const at = (file) => path.resolve('/', nameOf(file));
const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding);
const shownIn = (bytes, options) => {
  const encoding = encodingOf(options);
  return encoding && encoding !== 'buffer' ? wrap(bytes).toString(encoding) : wrap(bytes);
};
const bytesOf = (data, options) => {
  if (typeof data === 'string') return Uint8Array.from(Buffer.from(data, encodingOf(options) ?? 'utf8'));
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
  throw coded(TypeError, 'ERR_INVALID_ARG_TYPE',
    `The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView. Received ${inspect(data)}`);
};

/** Standard input is read once: what is left of it. */
let stdin;
function readStdin() {
  stdin ??= native.stdin();
  const all = stdin;
  stdin = new Uint8Array();
  return all;
}

/** Open files by descriptor: name, position, whether writing appends. */
const open = new Map();
let nextDescriptor = 20;

class Stats {
  constructor(size) {
    const folder = size < 0;
    this.dev = 1;
    this.mode = folder ? 0o40755 : 0o100644;
    this.nlink = 1;
    this.uid = 0;
    this.gid = 0;
    this.size = folder ? 4096 : size;
    for (const name of ['atime', 'mtime', 'ctime', 'birthtime']) {
      this[`${name}Ms`] = 0;
      this[name] = new Date(0);
    }
    Object.defineProperty(this, 'folder', { value: folder });
  }

  isFile() { return !this.folder; }
  isDirectory() { return this.folder; }
  isSymbolicLink() { return false; }
  isFIFO() { return false; }
  isSocket() { return false; }
}

class Dirent {
  constructor(name, folder, parent) {
    this.name = name;
    this.parentPath = parent;
    this.path = parent;
    Object.defineProperty(this, 'folder', { value: folder });
  }

  isFile() { return !this.folder; }
  isDirectory() { return this.folder; }
  isSymbolicLink() { return false; }
}

function stat(file, syscall, options) {
  const size = native.size(at(file));
  if (size === 'ENOENT' && options?.throwIfNoEntry === false) return undefined;
  return new Stats(checked(size, syscall, nameOf(file)));
}

function removeAll(folder) {
  for (const name of native.list(folder)) {
    const inner = path.join(folder, name);
    if (native.size(inner) < 0) removeAll(inner);
    else native.remove(inner);
  }
  native.removeFolder(folder);
}

const sync = {
  readFile(file, options) {
    if (file === 0 || file === '/dev/stdin') return shownIn(readStdin(), options);
    if (typeof file === 'number') return shownIn(checked(native.read(descriptor(file, 'read').name), 'read'), options);
    const bytes = native.read(at(file));
    if (bytes === 'EISDIR') throw failed('EISDIR', 'read');
    return shownIn(checked(bytes, 'open', nameOf(file)), options);
  },
  writeFile(file, data, options) {
    const append = options?.flag?.startsWith('a') ?? false;
    if (typeof file === 'number') return void sync.write(file, data);
    const name = nameOf(file);
    if (name === '/dev/stdout' || name === '/dev/stderr') return void native.write(name === '/dev/stderr' ? 2 : 1, bytesOf(data, options));
    if (options?.flag?.includes('x') && native.size(at(file)) >= 0) throw failed('EEXIST', 'open', name);
    checked(native.save(at(file), bytesOf(typeof data === 'string' || ArrayBuffer.isView(data) ? data : String(data), options), append), 'open', name);
    return undefined;
  },
  appendFile(file, data, options) {
    const encoding = encodingOf(options);
    sync.writeFile(file, data, { encoding, flag: 'a' });
  },
  readdir(file, options) {
    const folder = at(file);
    const names = checked(native.list(folder), 'scandir', nameOf(file));
    const entries = (where, inside) => native.list(where).flatMap((name) => {
      const isFolder = native.size(path.join(where, name)) < 0;
      const entry = options?.withFileTypes ? new Dirent(name, isFolder, where) : inside + name;
      return isFolder && options?.recursive ? [entry, ...entries(path.join(where, name), `${inside}${name}/`)] : [entry];
    });
    return options?.withFileTypes || options?.recursive ? entries(folder, '') : names;
  },
  mkdir(file, options) {
    checked(native.makeFolder(at(file), Boolean(options?.recursive)), 'mkdir', nameOf(file));
    return options?.recursive ? at(file) : undefined;
  },
  mkdtemp(start) {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
    let name = start;
    for (let count = 0; count < 6; count += 1) name += letters[Math.floor(native.random() * letters.length)];
    sync.mkdir(name);
    return name;
  },
  rmdir(file, options) {
    if (options?.recursive) return sync.rm(file, options);
    return void checked(native.removeFolder(at(file)), 'rmdir', nameOf(file));
  },
  rm(file, options) {
    const size = native.size(at(file));
    if (size === 'ENOENT' && options?.force) return;
    checked(size, 'rm', nameOf(file));
    if (size >= 0) native.remove(at(file));
    else if (options?.recursive) removeAll(at(file));
    else throw coded(Error, 'ERR_FS_EISDIR', `Path is a directory: rm returned EISDIR (is a directory) ${nameOf(file)}`);
  },
  unlink(file) { checked(native.remove(at(file)), 'unlink', nameOf(file)); },
  stat: (file, options) => stat(file, 'stat', options),
  lstat: (file, options) => stat(file, 'lstat', options),
  access(file) { checked(native.size(at(file)), 'access', nameOf(file)); },
  realpath: (file) => (checked(native.size(at(file)), 'lstat', nameOf(file)), at(file)),
  copyFile(from, to) {
    const bytes = checked(native.read(at(from)), 'copyfile', nameOf(from), nameOf(to));
    checked(native.save(at(to), bytes, false), 'copyfile', nameOf(from), nameOf(to));
  },
  rename(from, to) {
    const [source, target] = [at(from), at(to)];
    const size = checked(native.size(source), 'rename', nameOf(from), nameOf(to));
    if (size >= 0) {
      checked(native.save(target, native.read(source), false), 'rename', nameOf(from), nameOf(to));
      if (source !== target) native.remove(source);
      return;
    }
    checked(native.makeFolder(target, true), 'rename', nameOf(from), nameOf(to));
    for (const name of native.list(source)) sync.rename(path.join(source, name), path.join(target, name));
    native.removeFolder(source);
  },
  truncate(file, length = 0) {
    const bytes = checked(native.read(at(file)), 'open', nameOf(file));
    const cut = new Uint8Array(length);
    cut.set(bytes.subarray(0, length));
    native.save(at(file), cut, false);
  },
  open(file, flags = 'r') {
    const name = at(file);
    const there = native.size(name);
    if (flags.startsWith('r')) checked(there, 'open', nameOf(file));
    else if (flags.includes('x') && typeof there === 'number') throw failed('EEXIST', 'open', nameOf(file));
    else checked(native.save(name, new Uint8Array(), flags.startsWith('a')), 'open', nameOf(file));
    nextDescriptor += 1;
    open.set(nextDescriptor, { name, position: 0, append: flags.startsWith('a') });
    return nextDescriptor;
  },
  close(fd) { if (!open.delete(fd) && !(fd >= 0 && fd <= 2)) throw failed('EBADF', 'close'); },
  read(fd, buffer, offset = 0, length = buffer.byteLength - offset, position = null) {
    if (offset !== null && typeof offset === 'object') ({ offset = 0, length = buffer.byteLength - offset, position = null } = offset);
    const target = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    if (fd === 0) {
      stdin ??= native.stdin();
      const part = stdin.subarray(0, length);
      target.set(part, offset);
      stdin = stdin.subarray(part.length);
      return part.length;
    }
    const file = descriptor(fd, 'read');
    const from = position ?? file.position;
    const part = checked(native.read(file.name), 'read').subarray(Number(from), Number(from) + length);
    target.set(part, offset);
    if (position === null || position === undefined) file.position += part.length;
    return part.length;
  },
  write(fd, data, offset, length, position) {
    let bytes = bytesOf(data);
    if (typeof data !== 'string') bytes = bytes.subarray(offset ?? 0, (offset ?? 0) + (length ?? bytes.length));
    else position = offset;
    if (fd === 1 || fd === 2) {
      native.write(fd, bytes.slice());
      return bytes.length;
    }
    const file = descriptor(fd, 'write');
    if (file.append) checked(native.save(file.name, bytes.slice(), true), 'write');
    else {
      const old = checked(native.read(file.name), 'write');
      const from = position ?? file.position;
      const whole = new Uint8Array(Math.max(old.length, from + bytes.length));
      whole.set(old);
      whole.set(bytes, from);
      checked(native.save(file.name, whole, false), 'write');
      if (position === undefined || position === null) file.position += bytes.length;
    }
    return bytes.length;
  },
  fstat: (fd) => new Stats(fd <= 2 ? 0 : checked(native.size(descriptor(fd, 'fstat').name), 'fstat')),
  fsync() {},
  chmod() {},
  utimes() {},
};

function descriptor(fd, syscall) {
  const file = open.get(fd);
  if (!file) throw failed('EBADF', syscall);
  return file;
}

const fs = {
  existsSync(file) {
    try {
      return typeof native.size(at(file)) === 'number';
    } catch {
      return false;
    }
  },
  exists(file, callback) { queueMicrotask(() => callback(fs.existsSync(file))); },
  constants: { F_OK: 0, X_OK: 1, W_OK: 2, R_OK: 4 },
  Stats,
  Dirent,
  promises: {},
};
for (const [name, call] of Object.entries(sync)) {
  fs[`${name}Sync`] = Object.defineProperty((...values) => call(...values), 'name', { value: `${name}Sync` });
  fs.promises[name] = Object.defineProperty(async (...values) => call(...values), 'name', { value: name });
  fs[name] = Object.defineProperty((...values) => {
    const callback = values.pop();
    let result;
    let error = null;
    try {
      result = call(...values);
    } catch (thrown) {
      error = thrown;
    }
    const { setImmediate } = require('internal/timers').api;
    setImmediate(() => (error === null ? callback(null, result) : callback(error)));
  }, 'name', { value: name });
}

module.exports = fs;
