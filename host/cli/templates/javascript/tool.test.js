// Runs the tool in Node. Once: npm install. Then: npm test
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { load } from 'rlf/testing';

const plugin = await load(fileURLToPath(new URL('NAME.js', import.meta.url)));

test('the longest words come first', async () => {
  const found = await plugin.call('NAME', { text: 'a red fox jumped', longest: 2 });
  assert.deepEqual(JSON.parse(found.text), { words: 4, longest: ['jumped', 'fox'] });
});

test('a wrong number is a failure that says why', async () => {
  const result = await plugin.call('NAME', { text: 'a', longest: 11 });
  assert.deepEqual([result.failed, result.text], [true, 'longest is 1 to 10']);
});
