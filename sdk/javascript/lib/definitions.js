// The definitions of functions, from the comments before them.

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const HINTS = { readOnly: 'read-only', idempotent: 'idempotent', deterministic: 'deterministic', openWorld: 'open-world' };
const PURE = ['readOnly', 'idempotent', 'deterministic'];
const COMMENT = /\/\*\*([^]*?)\*\//g;
/** A text, a comment, or one character. */
const TOKEN = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|\/\*[^]*?\*\/|\/\/.*|[^]/g;
const EXPORTED = /^\s*export\s+(?:async\s+)?(?:function\s*([\w$]+)|(?:const|let|var)\s+([\w$]+)\s*=)/;

/** Returns the name, if it can name a tool or a reward. */
export function checkName(name, what) {
  if (!NAME.test(name)) throw new TypeError(`${JSON.stringify(name)} cannot name a ${what}; use 1 to 64 of a-z A-Z 0-9 _ -`);
  return name;
}

/** The promises of a tool, as the host names them. */
export function hintsOf(about) {
  const holds = (key) => about[key] || (about.pure && PURE.includes(key));
  return Object.keys(HINTS).filter(holds).map((key) => HINTS[key]);
}

/**
 * The functions of a file that a comment marks with `@tool` or `@reward`:
 * `{line, kind, exported, name, description, parameters, returns, about}`.
 */
export function marked(source) {
  const found = [];
  for (const match of source.matchAll(COMMENT)) {
    const { text, tags } = parseComment(match[1]);
    const mark = tags.find(({ tag }) => tag === 'tool' || tag === 'reward');
    if (mark === undefined) continue;
    const line = source.slice(0, match.index).split('\n').length;
    const after = EXPORTED.exec(source.slice(match.index + match[0].length));
    if (after === null) throw new InvalidComment(line, `@${mark.tag} is for a function that the file exports: write \`export function\` after the comment`);
    const exported = after[1] ?? after[2];
    const written = source.slice(match.index + match[0].length + after[0].length);
    try {
      const defined = definition(mark, exported, text, tags);
      checkOrder(defined.parameters ?? [], parameterNames(written));
      found.push({ line, kind: mark.tag, exported, ...defined });
    } catch (error) {
      throw new InvalidComment(line, `${exported}: ${error.message}`);
    }
  }
  return found;
}

/** A comment that cannot be understood, with its line. */
export class InvalidComment extends Error {
  constructor(line, message) {
    super(message);
    this.line = line;
  }
}

function definition(mark, exported, text, tags) {
  const about = {};
  for (const { tag } of tags) if (tag in HINTS || tag === 'pure') about[tag] = true;
  if (mark.tag === 'reward') {
    const group = /\bgroup\b/.test(mark.rest);
    return { name: checkName(mark.rest.replace(/\bgroup\b/, '').trim() || exported, 'reward'), group };
  }
  const parameters = tags.filter(({ tag }) => tag === 'param').map(({ rest }) => parameter(rest));
  const returns = tags.find(({ tag }) => tag === 'returns' || tag === 'return');
  const output = returns && typed(returns.rest).schema;
  return {
    name: checkName(mark.rest || exported, 'tool'),
    description: text,
    parameters,
    outputSchema: output?.type === 'object' ? output : null,
    hints: hintsOf(about),
  };
}

/**
 * The names of a function's parameters, from the text after the function's own name: null for a pattern, `...` for all that
 * follow. Undefined if the text does not begin with parameters.
 */
function parameterNames(text) {
  const single = /^\s*(?:async\s+)?([\w$]+)\s*=>/.exec(text);
  if (single !== null) return [single[1]];
  const begin = /^\s*(?:async\s*)?(?:function\b[\s\w$]*)?\(/.exec(text);
  if (begin === null) return undefined;
  const parts = [''];
  let depth = 0;
  for (const [token] of text.slice(begin[0].length).matchAll(TOKEN)) {
    if (depth === 0 && token === ')') break;
    if (depth === 0 && token === ',') {
      parts.push('');
    } else if (!token.startsWith('//') && !token.startsWith('/*')) {
      depth += '([{'.includes(token) - ')]}'.includes(token);
      parts[parts.length - 1] += token;
    }
  }
  const named = parts.map((part) => part.trim()).filter((part) => part !== '');
  return named.map((part) => (part.startsWith('...') ? '...' : (/^([\w$]+)\s*(?:=[^]*)?$/.exec(part)?.[1] ?? null)));
}

/** Refuses tags that are not those of the function's parameters, in their order: arguments are passed in the order of the tags. */
function checkOrder(parameters, names) {
  if (names === undefined) return;
  for (const [at, { name }] of parameters.entries()) {
    const own = names.includes('...') && at >= names.indexOf('...') ? null : names[at];
    if (own === undefined) throw new TypeError(`@param ${name}: the function has no parameter ${at + 1}`);
    if (own !== null && own !== name) {
      throw new TypeError(`@param ${name} is in place ${at + 1}, where the function has \`${own}\`: write a tag for each parameter, in their order`);
    }
  }
}

/** The text of a comment before its first tag, and its tags with what follows each. */
function parseComment(comment) {
  const lines = comment.split('\n').map((line) => line.replace(/^\s*\*? ?/, '').trimEnd());
  const parts = [[]];
  for (const line of lines) {
    if (/^\s*@[A-Za-z]/.test(line)) parts.push([]);
    parts.at(-1).push(line.trim());
  }
  const [text, ...tagged] = parts.map((part) => part.join('\n').trim());
  const tags = tagged.map((part) => {
    const [, tag, rest] = /^@([A-Za-z]+)\s*([^]*)$/.exec(part);
    return { tag, rest: rest.trim() };
  });
  return { text, tags };
}

/** A type in braces, as a schema, and what follows it. */
function typed(rest) {
  if (!rest.startsWith('{')) return { schema: {}, rest };
  let depth = 0;
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === '{') depth += 1;
    if (rest[at] === '}') depth -= 1;
    if (depth === 0) return { ...schemaOf(rest.slice(1, at)), rest: rest.slice(at + 1).trim() };
  }
  throw new TypeError(`the type ${rest} has no closing brace`);
}

/** A parameter of `@param {type} name text`; `[name]` and `[name=default]` are optional. */
function parameter(text) {
  const { schema, isContext, rest } = typed(text);
  const match = /^(?:\[\s*([\w$]+)\s*(?:=\s*([^\]]*(?:\[[^\]]*\][^\]]*)*))?\]|([\w$]+))\s*(?:-\s+)?([^]*)$/.exec(rest);
  if (match === null) throw new TypeError(`@param ${text}: write @param {type} name and what it is, or [name=default]`);
  const [, optional, given, required, about] = match;
  const described = { ...schema };
  const description = about.replace(/\s+/g, ' ').trim();
  if (description) described.description = description;
  if (given !== undefined) described.default = literal(given.trim());
  return { name: optional ?? required, required: required !== undefined, schema: described, isContext };
}

function literal(text) {
  try {
    return JSON.parse(text.startsWith("'") ? `"${text.slice(1, -1)}"` : text);
  } catch {
    return text;
  }
}

/** The JSON Schema of a type in a comment, such as `string`, `integer[]`, `'a'|'b'`, `?number` or `{x: number, y?: string}`. */
export function schemaOf(text) {
  const tokens = text.match(/'[^']*'|"[^"]*"|[\w$.-]+|\[\]|[^\s]/g) ?? [];
  let at = 0;
  const next = (token) => tokens[at] === token && (at += 1) > 0;
  const expect = (token) => {
    if (!next(token)) throw new TypeError(`the type {${text}} is not understood: expected \`${token}\` ${tokens[at] ? `before \`${tokens[at]}\`` : 'at its end'}`);
  };
  let isContext = false;

  function union() {
    const options = [];
    next('|');
    do options.push(postfix()); while (next('|'));
    if (options.length === 1) return options[0];
    if (options.every((one) => 'const' in one)) return { enum: options.map((one) => one.const) };
    return { anyOf: options.map(named) };
  }
  function postfix() {
    let schema = next('?') ? { anyOf: [named(postfix()), { type: 'null' }] } : primary();
    while (next('[]')) schema = { type: 'array', items: named(schema) };
    return schema;
  }
  function primary() {
    const token = tokens[at];
    at += 1;
    if (token === '(') {
      const inner = union();
      expect(')');
      return inner;
    }
    if (token === '{') return object();
    if (token === '*') return {};
    if (/^['"]/.test(token ?? '')) return { const: token.slice(1, -1) };
    if (/^-?\d/.test(token ?? '')) return { const: Number(token) };
    if (token === 'true' || token === 'false') return { const: token === 'true' };
    if (token === 'Array' || token === 'Object' || token === 'Record') return generic(token);
    if (token === 'Context') {
      isContext = true;
      return {};
    }
    const schema = SIMPLE[token];
    if (schema === undefined) {
      throw new TypeError(`the type {${text}} is not understood${token === undefined ? '' : ` at \`${token}\``}; there are string, number, integer, boolean, object, any, T[], 'a'|'b', ?T and {name: T}`);
    }
    return { ...schema };
  }
  function generic(token) {
    if (token !== 'Record') next('.');
    if (!next('<')) return token === 'Array' ? { type: 'array' } : { type: 'object' };
    let schema = union();
    if (token !== 'Array') {
      expect(',');
      schema = { type: 'object', additionalProperties: named(union()) };
    } else schema = { type: 'array', items: named(schema) };
    expect('>');
    return schema;
  }
  function object() {
    const properties = {};
    const required = [];
    while (!next('}')) {
      const name = tokens[at];
      at += 1;
      if (!/^[\w$-]+$/.test(name ?? '')) throw new TypeError(`the type {${text}} is not understood: expected a name`);
      if (!next('?')) required.push(name);
      expect(':');
      properties[name] = named(union());
      if (!next(',') && !next(';') && tokens[at] !== '}') expect('}');
    }
    return { type: 'object', properties, required, additionalProperties: false };
  }

  const schema = union();
  if (at < tokens.length) throw new TypeError(`the type {${text}} is not understood at \`${tokens[at]}\``);
  return { schema: named(schema), isContext };
}

const SIMPLE = {
  string: { type: 'string' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  int: { type: 'integer' },
  boolean: { type: 'boolean' },
  bool: { type: 'boolean' },
  object: { type: 'object' },
  null: { type: 'null' },
  any: {},
  unknown: {},
};

/** A schema of its own: a single constant is an enumeration. */
function named(schema) {
  return 'const' in schema ? { enum: [schema.const] } : schema;
}
