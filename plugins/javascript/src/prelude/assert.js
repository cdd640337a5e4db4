'use strict';

const { inspect, kinds } = require('internal/inspect');
const { framesOf, linesOf } = require('internal/errors');

const WORDS = {
  deepStrictEqual: 'Expected values to be strictly deep-equal:',
  strictEqual: 'Expected values to be strictly equal:',
  deepEqual: 'Expected values to be loosely deep-equal:',
  notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:',
  notStrictEqual: 'Expected "actual" to be strictly unequal to:',
  notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
};

const shown = (value) => inspect(value, { compact: false, depth: 1000, maxArrayLength: Infinity, sorted: true, getters: true });

/** Lines of both, those of one side only marked `+` and `-`: a longest common subsequence. */
function difference(actual, expected) {
  const [a, b] = [actual.split('\n'), expected.split('\n')];
  if (a.length * b.length > 250_000) return [...a.map((line) => `+ ${line}`), ...b.map((line) => `- ${line}`)].join('\n');
  const longest = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i]}`);
      i += 1;
      j += 1;
    } else if (i < a.length && (j === b.length || longest[i + 1][j] >= longest[i][j + 1])) {
      lines.push(`+ ${a[i]}`);
      i += 1;
    } else {
      lines.push(`- ${b[j]}`);
      j += 1;
    }
  }
  return lines.join('\n');
}

function worded(operator, actual, expected) {
  if (operator.startsWith('not')) {
    const text = shown(actual);
    return text.includes('\n') ? `${WORDS[operator]}\n\n${text}` : `${WORDS[operator]} ${text}`.replace(/: (?=\S)/, ': ');
  }
  const [a, b] = [shown(actual), shown(expected)];
  const simple = (value) => (typeof value !== 'object' && typeof value !== 'function') || value === null;
  if (operator === 'deepEqual') return `${WORDS.deepEqual}\n\n${a}\n\nshould loosely deep-equal\n\n${b}`;
  if (simple(actual) && simple(expected) && !a.includes('\n') && !b.includes('\n') && a !== b && a.length + b.length <= 12) {
    return `${WORDS[operator]}\n\n${a} !== ${b}\n`;
  }
  if (simple(actual) && simple(expected)) return `${WORDS[operator]}\n+ actual - expected\n\n+ ${a}\n- ${b}`;
  if (a === b) {
    return operator === 'strictEqual'
      ? `Values have same structure but are not reference-equal:\n\n${a}\n`
      : `${WORDS[operator]}\n\n${a}\n`;
  }
  return `${WORDS[operator]}\n+ actual - expected\n\n${difference(a, b)}`;
}

class AssertionError extends Error {
  constructor(options) {
    const { message, actual, expected, operator, stackStartFn } = options;
    const limit = Error.stackTraceLimit;
    super(message === undefined
      ? WORDS[operator] ? worded(operator, actual, expected) : `${inspect(actual)} ${operator} ${inspect(expected)}`
      : String(message));
    Error.stackTraceLimit = limit;
    Object.defineProperty(this, 'name', { value: 'AssertionError', writable: true, configurable: true, enumerable: false });
    this.generatedMessage = message === undefined || options.generated === true;
    this.code = 'ERR_ASSERTION';
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
    if (stackStartFn) Error.captureStackTrace(this, stackStartFn);
    const { stack } = this;
    if (typeof stack === 'string') {
      Object.defineProperty(this, 'stack', {
        value: stack.replace(/^(?:AssertionError|Error)(?=:|\n|$)/, 'AssertionError [ERR_ASSERTION]'),
        writable: true, configurable: true, enumerable: false,
      });
    }
  }

  toString() { return `${this.name} [${this.code}]: ${this.message}`; }
}

function fail(operator, actual, expected, message, start) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message, actual, expected, operator, stackStartFn: start });
}

/** Deep equality, strict or `==`. */
function isDeepEqual(a, b, strict, seen = []) {
  if (Object.is(a, b)) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') {
    if (typeof a === 'function' || typeof b === 'function') return a === b;
    if (strict) return false;
    if ((a !== null && typeof a === 'object') || (b !== null && typeof b === 'object')) return false;
    // eslint-disable-next-line eqeqeq
    return a == b || (Number.isNaN(a) && Number.isNaN(b));
  }
  if (strict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const tag = Object.prototype.toString;
  if (tag.call(a) !== tag.call(b)) return false;
  if (kinds.date(a)) { if (!Object.is(a.getTime(), b.getTime())) return false; }
  else if (kinds.regexp(a)) { if (String(a) !== String(b) || a.lastIndex !== b.lastIndex) return false; }
  else if (a instanceof Error) { if (a.message !== b.message || a.name !== b.name) return false; }
  else if ([Number, String, Boolean, BigInt, Symbol].some((Class) => a instanceof Class)) {
    if (!Object.is(a.valueOf(), b.valueOf())) return false;
  } else if (a instanceof ArrayBuffer) { if (!isDeepEqual(new Uint8Array(a), new Uint8Array(b), strict, seen)) return false; }
  if (seen.some(([left, right]) => left === a && right === b)) return true;
  seen = [...seen, [a, b]];
  if (ArrayBuffer.isView(a) && !(a instanceof DataView)) {
    return a.length === b.length && a.every((value, at) => Object.is(value, b[at]) || (!strict && value === b[at]));
  }
  if (kinds.set(a)) {
    if (!kinds.set(b) || a.size !== b.size) return false;
    const left = [...b].filter((value) => !a.has(value));
    for (const value of a) {
      if (b.has(value)) continue;
      const at = left.findIndex((other) => isDeepEqual(value, other, strict, seen));
      if (at < 0) return false;
      left.splice(at, 1);
    }
  } else if (kinds.map(a)) {
    if (!kinds.map(b) || a.size !== b.size) return false;
    const left = new Map(b);
    for (const [key, value] of a) {
      let other = key;
      if (!left.has(key)) other = [...left.keys()].find((each) => typeof each === 'object' && isDeepEqual(key, each, strict, seen));
      if ((other === undefined && !left.has(other)) || !isDeepEqual(value, left.get(other), strict, seen)) return false;
      left.delete(other);
    }
  }
  const keysOf = (value) => [...Object.keys(value),
    ...(strict ? Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key)) : [])];
  const keys = keysOf(a);
  if (Array.isArray(a) && a.length !== b.length) return false;
  if (keys.length !== keysOf(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isDeepEqual(a[key], b[key], strict, seen));
}

/** The text of the call that failed, for `assert(value)` without a message. */
function callText(error) {
  const frame = framesOf(error)?.[0];
  const line = frame && linesOf(frame.file)?.[frame.line - 1];
  const from = line?.lastIndexOf('assert', frame.column - 1) ?? -1;
  if (from < 0) return undefined;
  let depth = 0;
  for (let at = from; at < line.length; at += 1) {
    if (line[at] === '(') depth += 1;
    else if (line[at] === ')') {
      depth -= 1;
      if (depth === 0) return line.slice(from, at + 1);
    }
  }
  return undefined;
}

function truthy(values, start) {
  const [value, message] = values;
  if (value) return;
  if (message instanceof Error) throw message;
  if (message === undefined) {
    const here = {};
    Error.captureStackTrace(here, start);
    const text = values.length === 0 ? undefined : callText(here);
    throw new AssertionError({
      message: values.length === 0
        ? 'No value argument passed to `assert.ok()`'
        : `The expression evaluated to a falsy value:${text ? `\n\n  ${text}\n` : ''}`,
      generated: true, actual: value, expected: true, operator: '==', stackStartFn: start,
    });
  }
  throw new AssertionError({ message, actual: value, expected: true, operator: '==', stackStartFn: start });
}

function assert(...values) { truthy(values, assert); }
const ok = function ok(...values) { truthy(values, ok); };

/** Whether `error` is what `expected` describes; throws where it is another. */
function expectThrown(error, expected, message, start) {
  if (expected === undefined || typeof expected === 'string') return;
  if (expected instanceof RegExp) {
    if (expected.test(String(error))) return;
    fail('throws', error, expected, message
      ?? `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`, start);
  }
  if (typeof expected === 'function') {
    if (expected.prototype !== undefined && error instanceof expected) return;
    if (Object.prototype.isPrototypeOf.call(Error, expected) || expected === Error) throw error;
    if (expected.call({}, error) === true) return;
    fail('throws', error, expected, message ?? `The ${expected.name ? `"${expected.name}" ` : ''}validation function is expected to return "true". Received ${inspect(expected.call({}, error))}`, start);
  }
  for (const key of Object.keys(expected)) {
    const matches = expected[key] instanceof RegExp && typeof error?.[key] === 'string'
      ? expected[key].test(error[key])
      : isDeepEqual(error?.[key], expected[key], true);
    if (!matches) fail('throws', error, expected, message ?? worded('deepStrictEqual', { [key]: error?.[key] }, { [key]: expected[key] }), start);
  }
}

const missing = (kind, expected, message) => {
  if (typeof expected === 'string') [expected, message] = [undefined, expected];
  const name = typeof expected === 'function' && expected.name ? ` (${expected.name})` : '';
  return `Missing expected ${kind}${name}${message ? `: ${message}` : '.'}`;
};

Object.assign(assert, {
  ok,
  AssertionError,
  isDeepEqual,
  // eslint-disable-next-line eqeqeq
  equal: function equal(a, b, message) { if (!(a == b || (Number.isNaN(a) && Number.isNaN(b)))) fail('==', a, b, message, equal); },
  // eslint-disable-next-line eqeqeq
  notEqual: function notEqual(a, b, message) { if (a == b || (Number.isNaN(a) && Number.isNaN(b))) fail('!=', a, b, message, notEqual); },
  strictEqual: function strictEqual(a, b, message) { if (!Object.is(a, b)) fail('strictEqual', a, b, message, strictEqual); },
  notStrictEqual: function notStrictEqual(a, b, message) { if (Object.is(a, b)) fail('notStrictEqual', a, b, message, notStrictEqual); },
  deepEqual: function deepEqual(a, b, message) { if (!isDeepEqual(a, b, false)) fail('deepEqual', a, b, message, deepEqual); },
  notDeepEqual: function notDeepEqual(a, b, message) { if (isDeepEqual(a, b, false)) fail('notDeepEqual', a, b, message, notDeepEqual); },
  deepStrictEqual: function deepStrictEqual(a, b, message) { if (!isDeepEqual(a, b, true)) fail('deepStrictEqual', a, b, message, deepStrictEqual); },
  notDeepStrictEqual: function notDeepStrictEqual(a, b, message) { if (isDeepEqual(a, b, true)) fail('notDeepStrictEqual', a, b, message, notDeepStrictEqual); },
  fail: function failed(message = 'Failed') {
    if (message instanceof Error) throw message;
    throw new AssertionError({ message, operator: 'fail', stackStartFn: failed });
  },
  throws: function throws(call, expected, message) {
    let error;
    try {
      call();
    } catch (thrown) {
      error = { thrown };
    }
    if (!error) throw new AssertionError({ message: missing('exception', expected, message), operator: 'throws', expected, stackStartFn: throws });
    expectThrown(error.thrown, expected, message, throws);
  },
  doesNotThrow: function doesNotThrow(call, expected, message) {
    try {
      call();
    } catch (error) {
      const said = typeof expected === 'string' ? expected : message;
      fail('doesNotThrow', error, expected, `Got unwanted exception${said ? `: ${said}` : '.'}\nActual message: "${error?.message}"`, doesNotThrow);
    }
  },
  rejects: async function rejects(promise, expected, message) {
    let error;
    try {
      await (typeof promise === 'function' ? promise() : promise);
    } catch (thrown) {
      error = { thrown };
    }
    if (!error) throw new AssertionError({ message: missing('rejection', expected, message), operator: 'rejects', expected, stackStartFn: rejects });
    expectThrown(error.thrown, expected, message, rejects);
  },
  doesNotReject: async function doesNotReject(promise, expected, message) {
    try {
      await (typeof promise === 'function' ? promise() : promise);
    } catch (error) {
      const said = typeof expected === 'string' ? expected : message;
      fail('doesNotReject', error, expected, `Got unwanted rejection${said ? `: ${said}` : '.'}\nActual message: "${error?.message}"`, doesNotReject);
    }
  },
  match: function match(text, pattern, message) {
    if (typeof text !== 'string' || !pattern.test(text)) {
      fail('match', text, pattern, message ?? `The input did not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, match);
    }
  },
  doesNotMatch: function doesNotMatch(text, pattern, message) {
    if (pattern.test(text)) {
      fail('doesNotMatch', text, pattern, message ?? `The input was expected to not match the regular expression ${inspect(pattern)}. Input:\n\n${inspect(text)}\n`, doesNotMatch);
    }
  },
  ifError: function ifError(value) {
    if (value !== null && value !== undefined) {
      throw new AssertionError({
        message: `ifError got unwanted exception: ${value instanceof Error ? value.message : inspect(value)}`,
        actual: value, expected: null, operator: 'ifError', stackStartFn: ifError,
      });
    }
  },
});
assert.strict = Object.assign(function strict(...values) { truthy(values, strict); }, assert, {
  equal: assert.strictEqual,
  notEqual: assert.notStrictEqual,
  deepEqual: assert.deepStrictEqual,
  notDeepEqual: assert.notDeepStrictEqual,
});
assert.strict.strict = assert.strict;

module.exports = assert;
