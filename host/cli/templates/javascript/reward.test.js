// Runs the reward in Node. Once: npm install. Then: npm test
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { load } from 'rlf/testing';

const plugin = await load(fileURLToPath(new URL('NAME.js', import.meta.url)));

test('a right answer with one call, and no answer', async () => {
  const called = { answer: '3', calls: [{ name: 'add', arguments: { a: 1, b: 2 } }], outcomes: [{ text: '3' }] };
  const scores = await plugin.grade({ reference: '3' }, [called, {}]);
  assert.deepEqual(scores, [{ right: 1, brief: 0.5 }, { right: 0, brief: 1 }]);
});
