import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { gates } from '../lib/gates.js';
import { askModel, askModels, callTool, callTools, chat, fetch, GateError, listModels, listTools, Response, runProgram } from '../lib/index.js';
import { load } from '../lib/testing.js';

/** Runs `ask` with a host that gives these answers. Returns what the host was asked. */
function asked(answers, ask) {
  let given;
  gates.ask = (kind, requests) => {
    given = [kind, JSON.parse(requests)];
    return JSON.stringify(answers);
  };
  try {
    ask();
  } finally {
    gates.ask = undefined;
  }
  return given;
}

test('calls of tools are sent and shown', () => {
  const observation = { content: [{ text: '2' }, { structured: '{"a":1}' }, { media_type: 'image/png' }], failed: false };
  const error = { kind: 'not-found', message: 'no tool' };
  let results;
  const given = asked([{ ended: 'ok', observation }, { ended: 'timeout', observation: null }, { error }], () => {
    results = callTools([['add', { a: 1 }], ['slow', {}], ['gone', {}]]);
  });
  assert.deepEqual(given, ['tools.invoke', [{ name: 'add', arguments: '{"a":1}' }, { name: 'slow', arguments: '{}' }, { name: 'gone', arguments: '{}' }]]);
  assert.deepEqual(results.slice(0, 2), [{ ended: 'ok', text: '2{"a":1}[image/png]', structured: [{ a: 1 }] }, { ended: 'timeout', text: null, structured: [] }]);
  assert.equal(results[2].kind, 'not-found');
  asked([{ error }], () => assert.throws(() => callTool('gone'), { kind: 'not-found', message: 'no tool' }));
  asked({ error: { kind: 'invalid-arguments', message: 'not so' } }, () => assert.throws(() => callTool('x'), /not so/));
});

test('programs and requests are sent and answered', () => {
  const report = { ended: 'ok', outcome: 'exited', exit_code: 3, exception: null, stdout: 'x', stderr: '', files: { '/o': '/w==' }, cpu_us: 7 };
  const [, [program]] = asked([report], () => {
    const { exitCode, files } = runProgram('1', { stdin: 'in', files: { a: new Uint8Array([255]) }, timeMs: 5 });
    assert.deepEqual([exitCode, files], [3, { '/o': new Uint8Array([255]) }]);
  });
  assert.deepEqual([program.stdin, program.files, program.limits.wall_ms], ['aW4=', { a: '/w==' }, 5]);
  const [, [request]] = asked([{ status: 200, headers: [], body: 'eyJ4IjoxfQ==' }], () => {
    assert.deepEqual(fetch('https://a', { headers: { k: { secret: 'KEY' }, l: 'v' } }).json(), { x: 1 });
  });
  assert.deepEqual(request.headers, [['k', { secret: 'KEY' }], ['l', { text: 'v' }]]);
});

test('questions are sent and answered', () => {
  const answer = { text: 'yes', cut_short: true, prompt_tokens: 3, completion_tokens: 1 };
  const [kind, [question]] = asked([answer], () => {
    assert.deepEqual(askModel('Is it?', { maxTokens: 9 }), { text: 'yes', cutShort: true, promptTokens: 3, completionTokens: 1 });
  });
  assert.deepEqual([kind, question], ['model.ask', { model: '', messages: [{ role: 'user', text: 'Is it?' }], max_tokens: 9, temperature: null }]);
  const error = { kind: 'exhausted', message: 'no more' };
  asked([answer, { error }], () => {
    const [, refused] = askModels([{ messages: [['system', 'Be short.'], ['user', 'Why?']], model: 'judge' }, { messages: '?' }]);
    assert.equal(refused.kind, 'exhausted');
  });
  assert.deepEqual(listModels(), []);
});

test('a question names the schema of its answer', () => {
  const answer = { text: '{"score":3}', cut_short: false, prompt_tokens: 3, completion_tokens: 1 };
  const schema = { type: 'object', required: ['score'] };
  const [, [question]] = asked([answer], () => assert.equal(askModel('How good?', { schema }).text, answer.text));
  assert.deepEqual([JSON.parse(question.schema), 'chat' in question], [schema, false]);
});

test('an agent asks in the form of chat completions', () => {
  const message = { role: 'assistant', content: 'Because.' };
  const request = { messages: [{ role: 'user', content: 'Why?' }], tools: [] };
  const answer = { text: 'Because.', cut_short: false, prompt_tokens: 3, completion_tokens: 1, message };
  const [, [question]] = asked([answer], () => assert.deepEqual(chat(request), message));
  assert.deepEqual([question.messages, JSON.parse(question.chat)], [[], request]);
});

test('outside the sandbox a test answers', async () => {
  assert.throws(() => fetch('https://a'), /the gate `http` is not open/);
  assert.deepEqual(listTools(), []);
  await load(fileURLToPath(new URL('plugins/right.js', import.meta.url)), {
    tools: (name, { a }) => {
      if (name !== 'add') throw new GateError('not-found', name);
      return { sum: a + 1 };
    },
    programs: ({ code }) => code.toUpperCase(),
    requests: ({ url }) => new Response(404, [], url),
  });
  assert.deepEqual(callTool('add', { a: 1 }), { ended: 'ok', text: '{"sum":2}', structured: [{ sum: 2 }] });
  assert.equal(callTools([['sub', {}]])[0].kind, 'not-found');
  assert.equal(runProgram('x').stdout, 'X');
  assert.equal(fetch('https://a').text(), 'https://a');
});
