'use strict';
// What `console.log` shows of a value: the layout of Node's `util.inspect`, with its defaults.

const custom = Symbol.for('nodejs.util.inspect.custom');
const DEFAULTS = {
  showHidden: false,
  depth: 2,
  colors: false,
  customInspect: true,
  showProxy: false,
  maxArrayLength: 100,
  maxStringLength: 10000,
  breakLength: 80,
  compact: 3,
  sorted: false,
  getters: false,
  numericSeparator: false,
};

const OBJECT = 0;
const ARRAY = 1;
const TypedArray = Object.getPrototypeOf(Uint8Array);
const typedName = Object.getOwnPropertyDescriptor(TypedArray.prototype, Symbol.toStringTag).get;
const sizeOf = (prototype) => Object.getOwnPropertyDescriptor(prototype, 'size').get;
const mapSize = sizeOf(Map.prototype);
const setSize = sizeOf(Set.prototype);
const hasOwn = Object.prototype.hasOwnProperty;
const isEnumerable = Object.prototype.propertyIsEnumerable;
const tagOf = Object.prototype.toString;

/** Whether a getter or method that looks at the inside of a value accepts it. */
function accepts(method, value, ...rest) {
  try {
    method.call(value, ...rest);
    return true;
  } catch {
    return false;
  }
}

const kinds = {
  map: (value) => value instanceof Map && accepts(mapSize, value),
  set: (value) => value instanceof Set && accepts(setSize, value),
  date: (value) => value instanceof Date && accepts(Date.prototype.getTime, value),
  regexp: (value) => value instanceof RegExp && value !== RegExp.prototype,
  error: (value) => value instanceof Error || tagOf.call(value) === '[object Error]',
  promise: (value) => value instanceof Promise && accepts(native.promiseState, undefined, value),
};

const ESCAPES = {
  '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\', "'": "\\'",
};
const SPECIAL = /[\x00-\x1f\x27\x5c\x7f-\x9f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const SPECIALS = new RegExp(SPECIAL, 'g');

function escaped(char) {
  if (ESCAPES[char]) return ESCAPES[char];
  const code = char.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).toUpperCase().padStart(2, '0')}`
    : `\\u${code.toString(16).toUpperCase()}`;
}

/** A string literal, in the quotes that need the fewest escapes. */
function quote(text) {
  let mark = "'";
  if (text.includes("'")) {
    if (!text.includes('"')) mark = '"';
    else if (!text.includes('`') && !text.includes('${')) mark = '`';
  }
  if (!SPECIAL.test(text)) return mark + text + mark;
  return mark + text.replace(SPECIALS, (char) => (char === "'" && mark !== "'" ? char : escaped(char))) + mark;
}

function number(value, context) {
  const text = Object.is(value, -0) ? '-0' : `${value}`;
  if (!context.numericSeparator || !Number.isFinite(value) || /e/.test(text)) return text;
  return separated(text);
}

function separated(text) {
  const [whole, fraction] = text.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, '_');
  return fraction === undefined ? grouped : `${grouped}.${fraction.replace(/(\d{3})(?=\d)/g, '$1_')}`;
}

function primitive(context, value) {
  switch (typeof value) {
    case 'string': {
      let text = value;
      let more = '';
      if (text.length > context.maxStringLength) {
        const left = text.length - context.maxStringLength;
        text = text.slice(0, context.maxStringLength);
        more = `... ${left} more character${left > 1 ? 's' : ''}`;
      }
      if (context.compact !== true && text.length > 16 && text.length > context.breakLength - context.indentation - 4) {
        return text.split(/(?<=\n)/).map(quote).join(` +\n${' '.repeat(context.indentation + 2)}`) + more;
      }
      return quote(text) + more;
    }
    case 'number':
      return number(value, context);
    case 'bigint':
      return `${context.numericSeparator ? separated(`${value}`) : value}n`;
    case 'symbol':
      return Symbol.prototype.toString.call(value);
    default:
      return `${value}`;
  }
}

function constructorName(object) {
  let at = object;
  while (at !== null && at !== undefined) {
    const own = Object.getOwnPropertyDescriptor(at, 'constructor');
    if (own !== undefined && typeof own.value === 'function' && own.value.name !== '') {
      let instance = false;
      try {
        instance = object instanceof own.value;
      } catch {
        // What has no prototype has no instances.
      }
      if (instance) return String(own.value.name);
    }
    at = Object.getPrototypeOf(at);
  }
  return null;
}

function prefix(name, tag, fallback, size = '') {
  if (name === null) {
    return tag !== '' && tag !== fallback
      ? `[${fallback}${size}: null prototype] [${tag}] `
      : `[${fallback}${size}: null prototype] `;
  }
  return tag !== '' && name !== tag ? `${name}${size} [${tag}] ` : `${name}${size} `;
}

function keysOf(value, context) {
  const symbols = Object.getOwnPropertySymbols(value);
  if (context.showHidden) return [...Object.getOwnPropertyNames(value), ...symbols];
  const keys = Object.keys(value);
  for (const symbol of symbols) if (isEnumerable.call(value, symbol)) keys.push(symbol);
  return keys;
}

const isIndex = (key) => typeof key === 'string' && /^(?:0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;

function functionBase(value, name, tag) {
  const source = Function.prototype.toString.call(value);
  if (source.startsWith('class') && source.endsWith('}')) {
    const own = hasOwn.call(value, 'name') && value.name !== '' ? value.name : '(anonymous)';
    let base = `class ${typeof own === 'string' ? own : '(anonymous)'}`;
    if (name !== 'Function' && name !== null) base += ` [${name}]`;
    if (tag !== '' && name !== tag) base += ` [${tag}]`;
    if (name === null) base += ' extends [null prototype]';
    else {
      const parent = Object.getPrototypeOf(value).name;
      if (parent) base += ` extends ${parent}`;
    }
    return `[${base}]`;
  }
  const kind = /^\[object (Async)?(Generator)?Function\]$/.exec(tagOf.call(value));
  const type = `${kind?.[1] ?? ''}${kind?.[2] ?? ''}Function`;
  let base = `[${type}`;
  if (name === null) base += ' (null prototype)';
  base += value.name === '' || typeof value.name !== 'string' ? ' (anonymous)' : `: ${value.name}`;
  base += ']';
  if (name !== type && name !== null) base += ` ${name}`;
  if (tag !== '' && name !== tag) base += ` [${tag}]`;
  return base;
}

function errorBase(error, name, tag, context, keys) {
  let stack = typeof error.stack === 'string' && error.stack !== '' ? error.stack : Error.prototype.toString.call(error);
  if (hasOwn.call(error, 'cause') && !keys.includes('cause')) keys.push('cause');
  if (Array.isArray(error.errors) && hasOwn.call(error, 'errors') && !keys.includes('errors')) keys.push('errors');
  // The heading was written when the error was made; its class may say more.
  const shown = error.name !== undefined && error.name !== null ? String(error.name) : 'Error';
  const better = name ?? shown;
  const lines = stack.split('\n');
  const head = /^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n\s+at|$)/.exec(stack) ?? /^([a-z_A-Z0-9-]*Error)$/.exec(lines[0]);
  if (name !== null && !(better.endsWith('Error') && stack.startsWith(better)
      && (stack.length === better.length || stack[better.length] === ':' || stack[better.length] === '\n'))) {
    if (head && !head[1].includes('[') && !head[1].startsWith(better)) {
      const own = head[1];
      if (shown.includes(better)) {
        if (own !== shown) stack = stack.replace(own, shown);
      } else if (better.includes(own)) stack = stack.replace(own, better);
      else if (own === 'Error' || shown === own) stack = `${better}${stack.slice(own.length)}`.replace(/^(\S+)/, own === better ? '$1' : `${own === 'Error' ? better : `${own} [${better}]`}`);
    }
  }
  for (const key of ['name', 'message', 'stack']) {
    const at = keys.indexOf(key);
    if (at >= 0 && (typeof error[key] !== 'string' || stack.includes(error[key]))) keys.splice(at, 1);
  }
  if (name === null) stack = stack.replace(/^\w*Error/, (own) => `[${own}: null prototype]`);
  const after = error.message ? stack.indexOf(error.message) : -1;
  const from = after >= 0 ? after + String(error.message).length : 0;
  if (stack.indexOf('\n    at', from) < 0) stack = `[${stack}]`;
  if (context.indentation !== 0) stack = stack.replaceAll('\n', `\n${' '.repeat(context.indentation)}`);
  return stack;
}

function format(context, value, level, typed) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return primitive(context, value);
  let proxied = value;
  for (let target = native.proxyTarget(value); target !== undefined; target = native.proxyTarget(target)) {
    if (target === null) return '<Revoked Proxy>';
    proxied = target;
  }
  const original = value;
  value = proxied;
  if (context.customInspect) {
    const own = value[custom];
    if (typeof own === 'function' && own !== inspect && !(value.constructor && value.constructor.prototype === value)) {
      const depth = context.depth === null ? null : context.depth - level;
      const result = own.call(original, depth, { ...optionsOf(context), stylize: (text) => `${text}` }, inspect);
      if (result !== original) {
        return typeof result === 'string'
          ? result.replaceAll('\n', `\n${' '.repeat(context.indentation)}`)
          : format(context, result, level);
      }
    }
  }
  if (context.seen.includes(value)) {
    let index = context.circular.get(value);
    if (index === undefined) context.circular.set(value, (index = context.circular.size + 1));
    return `[Circular *${index}]`;
  }
  return object(context, value, level, typed);
}

function optionsOf(context) {
  const options = {};
  for (const key of Object.keys(DEFAULTS)) options[key] = context[key];
  return options;
}

function object(context, value, level, typed) {
  const name = constructorName(value);
  let tag = value[Symbol.toStringTag];
  if (typeof tag !== 'string' || (tag !== '' && (context.showHidden ? hasOwn : isEnumerable).call(value, Symbol.toStringTag))) tag = '';
  let keys = [];
  let base = '';
  let entries = () => [];
  let braces = ['{', '}'];
  let kind = OBJECT;
  const array = Array.isArray(value);
  if (array || (value instanceof TypedArray && typedName.call(value) !== undefined)) {
    keys = keysOf(value, context).filter((key) => !isIndex(key) && !(context.showHidden && key === 'length'));
    const fallback = array ? 'Array' : typedName.call(value);
    const before = array && name === 'Array' && tag === '' ? '' : prefix(name, tag, fallback, `(${value.length})`);
    braces = [`${before}[`, ']'];
    if (value.length === 0 && keys.length === 0) return `${braces[0]}]`;
    kind = ARRAY;
    entries = array ? arrayEntries : typedEntries;
  } else if (kinds.set(value)) {
    keys = keysOf(value, context);
    const before = prefix(name, tag, 'Set', `(${setSize.call(value)})`);
    entries = setEntries;
    if (setSize.call(value) === 0 && keys.length === 0) return `${before}{}`;
    braces[0] = `${before}{`;
  } else if (kinds.map(value)) {
    keys = keysOf(value, context);
    const before = prefix(name, tag, 'Map', `(${mapSize.call(value)})`);
    entries = mapEntries;
    if (mapSize.call(value) === 0 && keys.length === 0) return `${before}{}`;
    braces[0] = `${before}{`;
  } else if (tagOf.call(value) === '[object Arguments]' && name === 'Object') {
    keys = keysOf(value, context);
    if (keys.length === 0) return '[Arguments] {}';
    braces[0] = '[Arguments] {';
  } else {
    keys = keysOf(value, context);
    if (typeof value === 'function') {
      base = functionBase(value, name, tag);
      if (keys.length === 0) return base;
    } else if (kinds.regexp(value)) {
      base = RegExp.prototype.toString.call(value);
      const before = prefix(name, tag, 'RegExp');
      if (before !== 'RegExp ') base = before + base;
      if (keys.length === 0) return base;
    } else if (kinds.date(value)) {
      base = Number.isNaN(value.getTime()) ? 'Invalid Date' : Date.prototype.toISOString.call(value);
      const before = prefix(name, tag, 'Date');
      if (before !== 'Date ') base = before + base;
      if (keys.length === 0) return base;
    } else if (kinds.error(value)) {
      base = errorBase(value, name, tag, context, keys);
      if (keys.length === 0) return base;
    } else if (value instanceof ArrayBuffer) {
      braces[0] = `${prefix(name, tag, 'ArrayBuffer')}{`;
      entries = bufferEntries;
    } else if (value instanceof DataView) {
      braces[0] = `${prefix(name, tag, 'DataView')}{`;
      entries = (inner, view, deeper) => ['byteLength', 'byteOffset', 'buffer'].map((key) => `${key}: ${nested(inner, view[key], deeper)}`);
    } else if (kinds.promise(value)) {
      braces[0] = `${prefix(name, tag, 'Promise')}{`;
      entries = promiseEntries;
    } else if (value instanceof WeakSet || value instanceof WeakMap) {
      braces[0] = `${prefix(name, tag, value instanceof WeakSet ? 'WeakSet' : 'WeakMap')}{`;
      entries = () => ['<items unknown>'];
    } else if (value instanceof WeakRef) {
      braces[0] = `${prefix(name, tag, 'WeakRef')}{`;
      entries = (inner, ref, deeper) => [nested(inner, ref.deref(), deeper)];
    } else if (tag === 'Module' && name === null) {
      braces[0] = '[Module: null prototype] {';
      entries = (inner, namespace, deeper) => moduleEntries(inner, namespace, deeper, keys);
      if (keys.length === 0) return '[Module: null prototype] {}';
    } else if (tag === 'Map Iterator' || tag === 'Set Iterator') {
      braces = [`[${tag}] {`, '}'];
    } else if (boxed(value)) {
      const [type, inner] = boxed(value);
      base = `[${type}`;
      if (type !== name) base += name === null ? ' (null prototype)' : ` (${name})`;
      base += `: ${primitive({ ...context, indentation: 0, breakLength: Infinity }, inner)}]`;
      if (tag !== '' && tag !== name) base += ` [${tag}]`;
      if (type === 'String') keys = keys.filter((key) => !isIndex(key) && key !== 'length');
      if (keys.length === 0) return base;
    } else if (name === 'Object' && tag === '') {
      if (keys.length === 0) return '{}';
    } else {
      if (keys.length === 0) return `${prefix(name, tag, 'Object')}{}`;
      braces[0] = `${prefix(name, tag, 'Object')}{`;
    }
  }
  if (context.depth !== null && level > context.depth) {
    return array ? '[Array]' : `[${prefix(name, tag, 'Object').slice(0, -1)}]`.replace('[[', '[').replace(/\]\](?=$)/, ']');
  }
  context.seen.push(value);
  context.current = level;
  const deeper = level + 1;
  let output = entries(context, value, deeper);
  for (const key of keys) output.push(property(context, value, deeper, key, OBJECT));
  context.seen.pop();
  const index = context.circular.get(value);
  if (index !== undefined) {
    const reference = `<ref *${index}>`;
    if (context.compact !== true) base = base === '' ? reference : `${reference} ${base}`;
    else braces[0] = `${reference} ${braces[0]}`;
  }
  if (context.sorted) {
    const order = context.sorted === true ? undefined : context.sorted;
    if (kind === OBJECT) output.sort(order);
    else if (keys.length > 1) {
      const sorted = output.slice(output.length - keys.length).sort(order);
      output.splice(output.length - keys.length, keys.length, ...sorted);
    }
  }
  return layout(context, output, base, braces, kind, level, typed ?? value);
}

function boxed(value) {
  for (const [type, Class] of [['Number', Number], ['String', String], ['Boolean', Boolean], ['BigInt', BigInt], ['Symbol', Symbol]]) {
    if (value instanceof Class && accepts(Class.prototype.valueOf, value)) return [type, Class.prototype.valueOf.call(value)];
  }
  return undefined;
}

function nested(context, value, level) {
  context.indentation += 2;
  const text = format(context, value, level);
  context.indentation -= 2;
  return text;
}

function more(left) {
  return `... ${left} more item${left > 1 ? 's' : ''}`;
}

function arrayEntries(context, value, level) {
  const output = [];
  const limit = Math.min(Math.max(0, context.maxArrayLength), value.length);
  let at = 0;
  while (at < value.length && output.length < limit) {
    if (hasOwn.call(value, at)) {
      output.push(property(context, value, level, at, ARRAY));
      at += 1;
    } else {
      const from = at;
      while (at < value.length && !hasOwn.call(value, at)) at += 1;
      output.push(`<${at - from} empty item${at - from > 1 ? 's' : ''}>`);
    }
  }
  if (at < value.length) output.push(more(value.length - at));
  return output;
}

function typedEntries(context, value, level) {
  const limit = Math.min(Math.max(0, context.maxArrayLength), value.length);
  const output = [];
  for (let at = 0; at < limit; at += 1) output.push(primitive(context, value[at]));
  if (value.length > limit) output.push(more(value.length - limit));
  return output;
}

function setEntries(context, value, level) {
  const output = [];
  const limit = Math.max(0, context.maxArrayLength);
  context.indentation += 2;
  for (const item of Set.prototype.values.call(value)) {
    if (output.length >= limit) {
      output.push(more(setSize.call(value) - limit));
      break;
    }
    output.push(format(context, item, level));
  }
  context.indentation -= 2;
  return output;
}

function mapEntries(context, value, level) {
  const output = [];
  const limit = Math.max(0, context.maxArrayLength);
  context.indentation += 2;
  for (const [key, item] of Map.prototype.entries.call(value)) {
    if (output.length >= limit) {
      output.push(more(mapSize.call(value) - limit));
      break;
    }
    output.push(`${format(context, key, level)} => ${format(context, item, level)}`);
  }
  context.indentation -= 2;
  return output;
}

function bufferEntries(context, value) {
  const shown = new Uint8Array(value, 0, Math.min(50, value.byteLength));
  const hex = Array.from(shown, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  const left = value.byteLength - shown.length;
  const rest = left > 0 ? ` ... ${left} more byte${left > 1 ? 's' : ''}` : '';
  return [`[Uint8Contents]: <${hex}${rest}>`, `byteLength: ${value.byteLength}`];
}

function promiseEntries(context, value, level) {
  const [state, result] = native.promiseState(value);
  if (state === 'pending') return ['<pending>'];
  const text = nested(context, result, level);
  return [state === 'rejected' ? `<rejected> ${text}` : text];
}

function moduleEntries(context, value, level, keys) {
  return keys.splice(0).map((key) => {
    try {
      return property(context, value, level, key, OBJECT);
    } catch {
      return `${String(key)}: <uninitialized>`;
    }
  });
}

function property(context, value, level, key, kind) {
  const own = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key], enumerable: true };
  let text;
  if (own.get !== undefined) {
    const label = own.set !== undefined ? 'Getter/Setter' : 'Getter';
    text = `[${label}]`;
    if (context.getters === true || (context.getters === 'get' && own.set === undefined) || (context.getters === 'set' && own.set !== undefined)) {
      try {
        const got = own.get.call(value);
        text = got !== null && typeof got === 'object'
          ? `[${label}] ${nested(context, got, level)}`
          : `[${label}: ${primitive(context, got)}]`;
      } catch (error) {
        text = `[${label}: <Inspection threw (${error.message})>]`;
      }
    }
  } else if (own.set !== undefined) text = '[Setter]';
  else text = nested(context, own.value, level);
  if (kind === ARRAY) return text;
  let name;
  if (typeof key === 'symbol') name = `[${Symbol.prototype.toString.call(key)}]`;
  else if (key === '__proto__') name = "['__proto__']";
  else if (own.enumerable === false) name = `[${key}]`;
  else name = /^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key) ? key : quote(key);
  return `${name}: ${text}`;
}

/** In columns where that needs fewer lines. */
function group(context, output, value) {
  let total = 0;
  let longest = 0;
  const length = context.maxArrayLength < output.length ? output.length - 1 : output.length;
  const widths = [];
  for (let at = 0; at < length; at += 1) {
    const each = width(output[at]);
    widths.push(each);
    total += each + 2;
    longest = Math.max(longest, each);
  }
  const widest = longest + 2;
  if (!(widest * 3 + context.indentation < context.breakLength && (total / widest > 5 || longest <= 6))) return output;
  const bias = Math.sqrt(widest - total / output.length);
  const biased = Math.max(widest - 3 - bias, 1);
  const columns = Math.min(
    Math.round(Math.sqrt(2.5 * biased * length) / biased),
    Math.floor((context.breakLength - context.indentation) / widest),
    context.compact * 4,
    15,
  );
  if (columns <= 1) return output;
  const lengths = [];
  for (let column = 0; column < columns; column += 1) {
    let most = 0;
    for (let at = column; at < length; at += columns) most = Math.max(most, widths[at]);
    lengths.push(most + 2);
  }
  let pad = String.prototype.padStart;
  if (value !== undefined) {
    for (let at = 0; at < output.length; at += 1) {
      if (typeof value[at] !== 'number' && typeof value[at] !== 'bigint') {
        pad = String.prototype.padEnd;
        break;
      }
    }
  }
  const rows = [];
  for (let first = 0; first < length; first += columns) {
    const last = Math.min(first + columns, length) - 1;
    let row = '';
    for (let at = first; at < last; at += 1) {
      row += pad.call(`${output[at]}, `, lengths[at - first] + output[at].length - widths[at]);
    }
    row += pad === String.prototype.padStart
      ? output[last].padStart(lengths[last - first] + output[last].length - widths[last] - 2)
      : output[last];
    rows.push(row);
  }
  if (length < output.length) rows.push(output[length]);
  return rows;
}

/** Columns on a terminal. */
function width(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const char of text.normalize('NFC')) {
    const code = char.codePointAt(0);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || /\p{M}/u.test(char) || code === 0x200b || code === 0x200d || (code >= 0xfe00 && code <= 0xfe0f)) continue;
    columns += isWide(code) ? 2 : 1;
  }
  return columns;
}

const isWide = (code) => code >= 0x1100 && (
  code <= 0x115f || code === 0x2329 || code === 0x232a || (code >= 0x2e80 && code <= 0x3247 && code !== 0x303f)
  || (code >= 0x3250 && code <= 0x4dbf) || (code >= 0x4e00 && code <= 0xa4c6) || (code >= 0xa960 && code <= 0xa97c)
  || (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe10 && code <= 0xfe19)
  || (code >= 0xfe30 && code <= 0xfe6b) || (code >= 0xff01 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6)
  || (code >= 0x1b000 && code <= 0x1b001) || (code >= 0x1f200 && code <= 0x1f251) || (code >= 0x1f300 && code <= 0x1f64f)
  || (code >= 0x20000 && code <= 0x3fffd));

function layout(context, output, base, braces, kind, level, value) {
  const lead = base ? `${base} ` : '';
  if (context.compact !== true) {
    if (typeof context.compact === 'number' && context.compact >= 1) {
      const { length } = output;
      if (kind === ARRAY && length > 6) output = group(context, output, value);
      if (context.current - level < context.compact && length === output.length) {
        const start = output.length + context.indentation + braces[0].length + base.length + 10;
        if (fits(context, output, start, base)) {
          const joined = output.join(', ');
          if (!joined.includes('\n')) return `${lead}${braces[0]} ${joined} ${braces[1]}`;
        }
      }
    }
    const indent = `\n${' '.repeat(context.indentation)}`;
    return `${lead}${braces[0]}${indent}  ${output.join(`,${indent}  `)}${indent}${braces[1]}`;
  }
  if (fits(context, output, 0, base)) return `${braces[0]}${base ? ` ${base}` : ''} ${output.join(', ')} ${braces[1]}`;
  const indent = `\n${' '.repeat(context.indentation)}`;
  const gap = base === '' && braces[0].length === 1 ? ' ' : `${base ? ` ${base}` : ''}\n${indent}  `;
  return `${braces[0]}${gap}${output.join(`,${indent}  `)} ${braces[1]}`;
}

function fits(context, output, start, base) {
  let total = output.length + start;
  if (total + output.length > context.breakLength) return false;
  for (const part of output) {
    total += part.length;
    if (total > context.breakLength) return false;
  }
  return base === '' || !base.includes('\n');
}

function inspect(value, options, depth) {
  const context = { ...DEFAULTS, seen: [], circular: new Map(), indentation: 0, current: 0 };
  if (typeof options === 'boolean') {
    context.showHidden = options;
    if (depth !== undefined) context.depth = depth;
  } else if (options !== null && typeof options === 'object') {
    for (const key of Object.keys(DEFAULTS)) if (options[key] !== undefined) context[key] = options[key];
  }
  if (context.maxArrayLength === null) context.maxArrayLength = Infinity;
  if (context.maxStringLength === null) context.maxStringLength = Infinity;
  if (context.depth === Infinity) context.depth = null;
  return format(context, value, 0);
}
inspect.custom = custom;
inspect.defaultOptions = DEFAULTS;
inspect.colors = {};
inspect.styles = {};

/** As `%s` shows it. */
function asString(value) {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : `${value}`;
  if (typeof value === 'symbol') return Symbol.prototype.toString.call(value);
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return String(value);
  const own = value.toString;
  const builtin = own === Object.prototype.toString || own === Error.prototype.toString || own === Array.prototype.toString
    || own === Function.prototype.toString || typeof own !== 'function';
  if (builtin || (own === Date.prototype.toString)) return inspect(value, { depth: 0, colors: false, compact: 3 });
  return String(value);
}

function directive(letter, value) {
  switch (letter) {
    case 's':
      return asString(value);
    case 'd':
      if (typeof value === 'bigint') return `${value}n`;
      return typeof value === 'symbol' || (typeof value === 'object' && value !== null && !(value instanceof Date) && Number.isNaN(Number(value)))
        ? 'NaN' : asString(Number(value));
    case 'i':
      if (typeof value === 'bigint') return `${value}n`;
      return typeof value === 'symbol' ? 'NaN' : asString(Number.parseInt(value, 10));
    case 'f':
      return typeof value === 'symbol' ? 'NaN' : asString(Number.parseFloat(value));
    case 'j':
      try {
        return JSON.stringify(value);
      } catch (error) {
        if (/circular/i.test(error.message)) return '[Circular]';
        throw error;
      }
    case 'o':
      return inspect(value, { showHidden: true, showProxy: true, depth: 4 });
    case 'O':
      return inspect(value);
    default:
      return '';
  }
}

function formatWithOptions(options, ...values) {
  let at = 0;
  let out = '';
  if (typeof values[0] === 'string') {
    if (values.length === 1) return values[0];
    at = 1;
    out = values[0].replace(/%([sdifjoOc%])/g, (whole, letter) => {
      if (letter === '%') return '%';
      if (at >= values.length) return whole;
      const value = values[at];
      at += 1;
      return letter === 'O' ? inspect(value, options) : directive(letter, value);
    });
    if (at < values.length) out += ' ';
  }
  return out + values.slice(at).map((value) => (typeof value === 'string' ? value : inspect(value, options))).join(' ');
}

module.exports = {
  inspect,
  formatWithOptions,
  format: (...values) => formatWithOptions(undefined, ...values),
  kinds,
};
