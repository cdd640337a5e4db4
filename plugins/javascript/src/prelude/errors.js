'use strict';
// Errors as V8 words and prints them: the engine's own messages rewritten where they differ, and `stack` with the
// message on top. Frames of Node's own part, and of the part that calls plugins, are left out.

const WRAPPER_LENGTH = '(function (exports, require, module, __filename, __dirname) {'.length;
/** What files hold, and by how much the columns of their first lines are off. */
const sources = new Map();
const offsets = new Map();

const RULES = [
  [/^cannot read property '(.*)' of (undefined|null)$/s, (m) => `Cannot read properties of ${m[2]} (reading '${m[1]}')`],
  [/^cannot set property '(.*)' of (undefined|null)$/s, (m) => `Cannot set properties of ${m[2]} (setting '${m[1]}')`],
  [/^'(.*)' is read-only$/s, (m) => (m.constant
    ? 'Assignment to constant variable.'
    : `Cannot assign to read only property '${m[1]}' of object`)],
  [/^this is not initialized$/, () => "Must call super constructor in derived class before accessing 'this' or returning from derived constructor"],
  [/^(.*) is not initialized$/s, (m) => `Cannot access '${m[1]}' before initialization`],
  [/^empty array$/, () => 'Reduce of empty array with no initial value'],
  [/^Date value is NaN$/, () => 'Invalid time value'],
  [/^bad normalization form$/, () => 'The normalization form should be one of NFC, NFD, NFKC, NFKD.'],
  [/^invalid code point$/, () => 'Invalid code point'],
  [/^invalid array length$/, () => 'Invalid array length'],
  [/^invalid string length$/, () => 'Invalid string length'],
  [/^object is not extensible$/, (m) => (m.assigned
    ? `Cannot add property ${m.assigned}, object is not extensible`
    : 'Cannot add property, object is not extensible')],
  [/^no setter for property$/, (m) => `Cannot set property${m.assigned ? ` ${m.assigned}` : ''} of #<Object> which has only a getter`],
  [/^could not delete property$/, () => 'Cannot delete property of object'],
  [/^circular reference$/, () => 'Converting circular structure to JSON'],
  [/^invalid repeat count$/, () => 'Invalid count value'],
  [/^cannot convert BigInt to number$/, () => 'Cannot mix BigInt and other types, use explicit conversions'],
  [/^cannot convert to BigInt: not an integer$/, () => 'The number cannot be converted to a BigInt because it is not an integer'],
  [/^invalid number of digits$/, () => 'toFixed() digits argument must be between 0 and 100'],
  [/^expecting hex digit$/, () => 'URI malformed'],
  [/^iterator does not have a next method$/, () => 'undefined is not a function'],
  [/^class constructors must be invoked with 'new'$/, () => "Class constructor cannot be invoked without 'new'"],
  [/^cannot convert symbol to (string|number)$/, (m) => `Cannot convert a Symbol value to a ${m[1]}`],
  [/^cannot mix bigint and other types$/i, () => 'Cannot mix BigInt and other types, use explicit conversions'],
  [/^Do not know how to serialize a BigInt$/i, () => 'Do not know how to serialize a BigInt'],
  [/^BigInt division by zero$|^division by zero$/i, () => 'Division by zero'],
  [/^cannot convert to object$/, () => 'Cannot convert undefined or null to object'],
  [/^Cannot convert (undefined|null) to object$/i, () => 'Cannot convert undefined or null to object'],
  [/^invalid 'instanceof' right operand$/, () => "Right-hand side of 'instanceof' is not callable"],
  [/^invalid 'in' operand$/, () => "Cannot use 'in' operator to search for a key in a value that is no object"],
];

/** The call before `column` (one-based) in a line: `obj.method` of `obj.method(1)`. */
function calleeAt(frame) {
  if (!frame) return undefined;
  const lines = linesOf(frame.file);
  if (!lines) return undefined;
  const line = lines[frame.line - 1];
  if (line === undefined) return undefined;
  const at = frame.column - 1;
  const name = String.raw`[\p{ID_Start}$_#][\p{ID_Continue}$]*`;
  const chain = new RegExp(String.raw`(?:new\s+)?(?:${name})(?:\??\.(?:${name})|\[[^\[\]]*\])*(?=\s*(?:(?:\?\.)?\(|;|$|\x60|\)))`, 'gu');
  let best;
  for (const found of line.matchAll(chain)) {
    if (found.index <= at && at <= found.index + found[0].length + 1) best = found[0];
  }
  return best;
}

function linesOf(file) {
  const source = sources.get(file);
  if (typeof source !== 'string') return source;
  const lines = source.split(/\r\n|\n|\r|\u2028|\u2029/);
  sources.set(file, lines);
  return lines;
}

function reword(error, frames) {
  const { message } = error;
  if (typeof message !== 'string') return;
  let better;
  const iterated = /^cannot read property 'Symbol\.iterator' of (undefined|null)$/.exec(message);
  if (iterated) {
    better = `${iterated[1]} is not iterable`;
  } else
  if (message === 'not a function') {
    const callee = calleeAt(frames[0]);
    if (callee) better = /^new\s/.test(callee) ? `${callee.replace(/^new\s+/, '')} is not a constructor` : `${callee} is not a function`;
  } else if (message === 'not a constructor') {
    const callee = calleeAt(frames[0]);
    if (callee) better = `${callee.replace(/^new\s+/, '')} is not a constructor`;
  } else if (message === 'value is not iterable' || message === 'not iterable') {
    better = 'object is not iterable (cannot read property Symbol(Symbol.iterator))';
  } else {
    for (const [pattern, words] of RULES) {
      const found = pattern.exec(message);
      if (found) {
        found.constant = isConstant(found[1], frames[0]);
        found.assigned = assignedAt(frames[0]);
        better = words(found);
        break;
      }
    }
  }
  if (message === "class constructors must be invoked with 'new'" && frames.length > 1) {
    // The class, which was not entered.
    better = `Class constructor ${frames.shift().name} cannot be invoked without 'new'`;
  }
  if (error instanceof SyntaxError && !better) better = rewordSyntax(message, frames[0]);
  if (better && better !== message) {
    Object.defineProperty(error, 'message', { value: better, writable: true, configurable: true, enumerable: false });
  }
}

/** The property that is assigned to behind the place of an error: `b` of `a.b = 1`. */
function assignedAt(frame) {
  const line = frame && linesOf(frame.file)?.[frame.line - 1];
  return /^[\w$.]*?\.?([\w$]+)\s*=(?!=)/.exec(line?.slice(frame.column - 1) ?? '')?.[1];
}

/** What the parser says in one way and V8 in another, and what before the place V8 marks instead. */
const SYNTAX = [
  [/^invalid redefinition of /, (m) => `Identifier '${m.marked}' has already been declared`, /[\w$]+\s*$/],
  [/^expecting ';'$/, () => 'await is only valid in async functions and the top level bodies of modules', /(?<![\w$.])await\s+$/],
  [/^break must be inside loop or switch$/, () => 'Illegal break statement', /(?<![\w$.])break\s*$/],
  [/^continue must be inside loop$/, () => 'Illegal continue statement: no surrounding iteration statement', /(?<![\w$.])continue\s*$/],
  [/^missing initializer for variable$/, () => 'Missing initializer in const declaration', /[\w$]+\s*$/],
  [/^invalid assignment left-hand side$/i, () => 'Invalid left-hand side in assignment', /\S+\s*=\s*$/],
  [/^property constructor appears more than once$/, () => 'A class may only have one constructor', /constructor\s*$/],
  [/^invalid number literal$/, () => 'Invalid or unexpected token'],
  [/^unexpected end of string$/, (m) => (m.next === '`' ? 'Unterminated template literal' : 'Invalid or unexpected token')],
  [/^(?:variable name expected|expecting ';')$/, (m) => unexpected(m.next)],
];

function unexpected(token) {
  if (token === undefined) return 'Unexpected end of input';
  if (/^[\p{ID_Start}$_]/u.test(token)) return `Unexpected identifier '${token}'`;
  if (/^\d/.test(token)) return 'Unexpected number';
  if (/^['"]/.test(token)) return 'Unexpected string';
  return /^[@#\\]/.test(token) ? 'Invalid or unexpected token' : `Unexpected token '${token}'`;
}

function rewordSyntax(message, frame) {
  const lines = frame && linesOf(frame.file);
  if (Array.isArray(lines) && frame.line > lines.length) {
    // In what Node's part puts behind a module's text: that ended too early.
    Object.assign(frame, { line: lines.length, column: lines.at(-1).length + 1, width: 0 });
    return 'Unexpected end of input';
  }
  const line = (Array.isArray(lines) && lines[frame.line - 1]) || '';
  const at = frame ? frame.column - 1 : 0;
  for (const [pattern, words, before] of SYNTAX) {
    const said = pattern.exec(message);
    const marked = before?.exec(line.slice(0, at));
    if (!said || (before && !marked)) continue;
    said.next = /^\s*([\p{ID_Start}$_][\p{ID_Continue}$]*|\d[\w.]*|\S)/u.exec(line.slice(at))?.[1];
    if (marked) {
      said.marked = marked[0].replace(/\s*=?\s*$/, '');
      frame.column = marked.index + 1;
      // Of what is declared twice the beginning.
      if (!message.startsWith('invalid redefinition')) frame.width = said.marked.length;
    } else if (message === 'unexpected end of string' && said.next !== '`') frame.width = line.length - at;
    return words(said);
  }
  let found = /^unexpected token in expression: '(.*)'$/s.exec(message) ?? /^unexpected token: '(.*)'$/s.exec(message);
  if (found) return found[1] === '' || /^[@#\\]/.test(found[1]) ? unexpected(found[1] || undefined) : `Unexpected token '${found[1]}'`;
  found = /^redeclaration of '(.*)'$/s.exec(message) ?? /^invalid redefinition of (?:lexical|parameter|global) (?:identifier|name|variable)$/.exec(message);
  if (found?.[1]) return `Identifier '${found[1]}' has already been declared`;
  return undefined;
}

/** Whether it is a name that the line assigns to, and no property. */
function isConstant(name, frame) {
  const line = frame && linesOf(frame.file)?.[frame.line - 1];
  if (line === undefined || name === undefined) return true;
  const plain = RegExp.escape?.(name) ?? name.replace(/[$]/g, '\\$&');
  return new RegExp(`(?<![.\\w$])${plain}\\s*(?:[-+*/%&|^?<>]*=(?!=)|\\+\\+|--)|(?:\\+\\+|--)\\s*${plain}|\\b(?:of|in)\\b`).test(line);
}

/** Moves the place of an error to where V8 sees it: the beginning of `new Thing(..)`, the name of what was read. */
function moveTop(error, frame) {
  const line = frame && linesOf(frame.file)?.[frame.line - 1];
  if (line === undefined) return;
  const read = /^cannot (?:read|set) property '(.*)' of (?:undefined|null)$/s.exec(error.message);
  if (read) {
    const at = line.indexOf(`.${read[1]}`, frame.column - 1);
    if (at >= 0) frame.column = at + 2;
    return;
  }
  const before = line.slice(0, frame.column - 1);
  const made = before.lastIndexOf(`new ${error.constructor?.name}(`);
  if (made >= 0) frame.column = made + 1;
}

const nativeOwners = [['Array', Array.prototype], ['String', String.prototype], ['Map', Map.prototype], ['Set', Set.prototype],
  ['Promise', Promise.prototype], ['RegExp', RegExp.prototype], ['Number', Number.prototype], ['Function', Function.prototype]];
const nativeNames = new Map();
for (const [owner, prototype] of nativeOwners) {
  for (const name of Object.getOwnPropertyNames(prototype)) if (!nativeNames.has(name)) nativeNames.set(name, `${owner}.${name}`);
}
for (const [owner, object] of [['JSON', JSON], ['Reflect', Reflect], ['Object', Object]]) {
  for (const name of Object.getOwnPropertyNames(object)) if (!nativeNames.has(name)) nativeNames.set(name, `${owner}.${name}`);
}

function place(site) {
  const file = site.getFileName();
  if (site.isNative() || file === null || file === undefined) {
    const name = site.getFunctionName();
    return { name: nativeNames.get(name) ?? name, file: undefined };
  }
  let column = site.getColumnNumber();
  const line = site.getLineNumber();
  if (line === 1) column -= Math.min(offsets.get(file) ?? 0, column - 1);
  // The engine points to the name in `new Thing(`, V8 to the beginning.
  const made = /\bnew\s+$/.exec(linesOf(file)?.[line - 1]?.slice(0, column - 1) ?? '');
  if (made) column = made.index + 1;
  return { name: site.getFunctionName() ?? '', file, line, column };
}

function shown(frame) {
  if (frame.file === undefined) return `    at ${frame.name || '<anonymous>'} (<anonymous>)`;
  const where = `${frame.file}:${frame.line}:${frame.column}`;
  const anonymous = !frame.name || frame.name === '<anonymous>' || frame.name === '<eval>';
  return anonymous ? `    at ${where}` : `    at ${frame.name} (${where})`;
}

function heading(error) {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return '<error>';
  }
}

function constructorsOf(error) {
  const names = [];
  for (let at = Object.getPrototypeOf(error); at !== null && at !== Error.prototype; at = Object.getPrototypeOf(at)) {
    const name = Object.getOwnPropertyDescriptor(at, 'constructor')?.value?.name;
    if (name) names.push(name);
  }
  return names;
}

/** Where each error was made, for the line that an uncaught one points to. */
const frames = new WeakMap();

Error.prepareStackTrace = function prepareStackTrace(error, sites) {
  const all = [];
  for (const site of sites) {
    const frame = place(site);
    if (/^(?:node|rlf):/.test(frame.file)) continue;
    all.push(frame);
  }
  // A native frame that only Node's own part called is Node's too.
  while (all.length > 0 && all[all.length - 1].file === undefined) all.pop();
  if (error instanceof Error) {
    // An error's own constructors are no part of where it was made.
    const own = constructorsOf(error);
    while (own.includes(all[0]?.name)) all.shift();
    moveTop(error, all[0]);
    reword(error, all);
  }
  // Asked again on its way out, where nothing of the program is left on the stack.
  if (error !== null && typeof error === 'object' && (all.length > 0 || !frames.has(error))) frames.set(error, all);
  return [heading(error), ...all.map(shown)].join('\n');
};

// Node puts the message on top when somebody first looks, by which time a constructor has set the error's name.
const kept = Object.getOwnPropertyDescriptor(Error.prototype, 'stack');
const looked = new WeakSet();
Object.defineProperty(Error.prototype, 'stack', {
  get() {
    const text = kept.get.call(this);
    const found = typeof text === 'string' && !looked.has(this) ? frames.get(this) : undefined;
    if (found === undefined) return text;
    looked.add(this);
    const whole = [heading(this), ...found.map(shown)].join('\n');
    kept.set.call(this, whole);
    return whole;
  },
  set(value) {
    looked.add(this);
    kept.set.call(this, value);
  },
  configurable: true,
  enumerable: false,
});

module.exports = {
  /** Remembers what a file holds; `offset` is how long what stands before it in its first line is. */
  remember(file, source, offset = WRAPPER_LENGTH) {
    sources.set(file, source);
    offsets.set(file, offset);
  },
  linesOf,
  framesOf: (error) => frames.get(error),
  /** An error of Node's, with a code in its name. */
  coded(Base, code, message) {
    const error = new Base(message);
    Object.defineProperty(error, 'code', { value: code, writable: true, configurable: true, enumerable: true });
    const { stack } = error;
    if (typeof stack === 'string') {
      const value = stack.replace(error.name, `${error.name} [${code}]`);
      Object.defineProperty(error, 'stack', { value, writable: true, configurable: true, enumerable: false });
    }
    return error;
  },
};
