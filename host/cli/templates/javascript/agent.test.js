// Runs the agent in Node. Once: npm install. Then: npm test
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { GateError } from 'rlf';
import { load } from 'rlf/testing';

const file = fileURLToPath(new URL('NAME.js', import.meta.url));
const call = { id: 'a', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } };
const task = { id: '1', source: 'test', messages: [{ role: 'user', content: '1 + 2?' }], tools: [] };

test('the policy reads the results of its calls', async () => {
  const turns = [{ role: 'assistant', content: '', tool_calls: [call] }, { role: 'assistant', content: '3' }];
  const asked = [];
  const questions = (question) => {
    asked.push(structuredClone(question.chat.messages));
    return { text: '', message: turns[asked.length - 1] };
  };
  const plugin = await load(file, { questions, tools: (name, { a, b }) => `${a + b}` });
  assert.equal((await plugin.call('NAME', structuredClone(task))).text, '');
  assert.deepEqual(asked[1].slice(1), [turns[0], { role: 'tool', tool_call_id: 'a', content: '3' }]);
});

test('no further turn is a failure and no bug', async () => {
  const questions = () => {
    throw new GateError('exhausted', 'no turn is left');
  };
  const plugin = await load(file, { questions });
  const led = await plugin.call('NAME', structuredClone(task));
  assert.deepEqual([led.failed, led.text], [true, 'no turn is left']);
});
