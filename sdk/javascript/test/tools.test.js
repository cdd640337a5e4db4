import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { marked, schemaOf } from '../lib/definitions.js';
import { wellFormed } from '../lib/requests.js';
import { load } from '../lib/testing.js';

const path = (name) => fileURLToPath(new URL(`plugins/${name}`, import.meta.url));
const plugin = await load(path('dice.js'), { config: { owner: 'Ann' }, data: { words: { 'b.txt': 'red', 'a.txt': 'fox' } } });

test('comments become definitions', () => {
  const [roll, many] = ['roll', 'many'].map((name) => plugin.tools.find((tool) => tool.name === name));
  assert.equal(roll.description, 'Rolls dice and returns the sum.');
  assert.deepEqual(roll.input_schema, {
    type: 'object',
    properties: {
      count: { type: 'integer', description: 'How many dice, 1 to 100.' },
      sides: { type: 'integer', description: 'Sides of each.', default: 6 },
    },
    required: ['count'],
    additionalProperties: false,
  });
  assert.deepEqual(many.hints, ['read-only', 'idempotent', 'deterministic']);
  assert.deepEqual(many.output_schema, {
    type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'], additionalProperties: false,
  });
  assert.deepEqual(many.input_schema.properties.order, { enum: ['high', 'low'], description: 'Which come first.', default: 'high' });
});

test('a tool is called as the host calls it', async () => {
  assert.equal((await plugin.call('roll', { count: 2 }, { turn: 5 })).text, '17');
  assert.equal((await plugin.call('many', { counts: [1, 2], player: { name: 'Ben' } })).text, '{"sum":3,"order":"high","player":"Ben"}');
  assert.equal((await plugin.call('owner', { polite: true })).text, 'It belongs to Ann.');
  const refused = await plugin.call('roll', { count: 0 });
  assert.deepEqual([refused.failed, refused.text], [true, 'roll 1 to 100 dice']);
  await assert.rejects(plugin.call('crash', {}), ReferenceError);
  const shown = await plugin.call('show', {});
  assert.deepEqual([shown.text, shown.metrics], ['a.txt: fox b.txt: red[image/png]', { words: 2 }]);
});

test('halves of surrogate pairs are replaced, and nothing else', () => {
  const replaced = (value) => JSON.parse(wellFormed(JSON.stringify(value)));
  assert.deepEqual(replaced({ '\ud800a': '\udfff' }), { '\ufffda': '\ufffd' });
  for (const kept of ['\u{1f600}', '\\ud800', '\\\\ud800', 'd800', '\n"']) assert.equal(replaced(kept), kept);
  assert.equal(replaced('\\\ud800'), '\\\ufffd');
});

test('types of comments', () => {
  const cases = {
    'string[]': { type: 'array', items: { type: 'string' } },
    'Array<{a: number}>': { type: 'array', items: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false } },
    'Record<string, integer>': { type: 'object', additionalProperties: { type: 'integer' } },
    'string|null': { anyOf: [{ type: 'string' }, { type: 'null' }] },
    "('a'|'b')[]": { type: 'array', items: { enum: ['a', 'b'] } },
    '1|2': { enum: [1, 2] },
    '*': {},
    '?boolean': { anyOf: [{ type: 'boolean' }, { type: 'null' }] },
  };
  for (const [type, schema] of Object.entries(cases)) assert.deepEqual(schemaOf(type).schema, schema, type);
  for (const type of ['Date', 'Array<string', '{a}', 'string]', '']) assert.throws(() => schemaOf(type), /not understood/, type);
});

test('a comment that cannot be understood is an error with its line', () => {
  const wrong = {
    '\n/** @tool */\nfunction hidden() {}': [2, /export function/],
    '/**\n * @tool\n * @param {Date} day\n */\nexport function f() {}': [1, /f: the type \{Date\}/],
    '/** @tool a b */\nexport function f() {}': [1, /cannot name a tool/],
    '/** @tool\n * @param {string} */\nexport function f() {}': [1, /write @param \{type\} name/],
    '/** @tool\n * @param {number} b\n * @param {number} a */\nexport function f(a, b) {}': [1, /@param b is in place 1, where the function has `a`/],
    '/** @tool\n * @param {number} cnt */\nexport const f = async (count = ")", { x }) => count;': [1, /where the function has `count`/],
    '/** @tool\n * @param {number} a\n * @param {number} b */\nexport const f = a => a;': [1, /@param b: the function has no parameter 2/],
  };
  for (const [source, [line, message]] of Object.entries(wrong)) {
    assert.throws(() => marked(source), (error) => error.line === line && message.test(error.message), source);
  }
  assert.deepEqual(marked('/** @type {string} */\nconst a = 1; // @tool'), []);
  const right = ['function f(a = [1, ")"], /* , */ b) {}', 'const f = (a, ...rest) => a', 'const f = make(1)', 'function f({ a }, b) {}'];
  for (const written of right) marked(`/** @tool\n * @param {any} a\n * @param {any} b */\nexport ${written}`);
});
