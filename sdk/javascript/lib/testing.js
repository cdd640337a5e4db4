// A plugin in Node, called as the host calls it.

import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

import { gates } from './gates.js';
import { registered } from './index.js';
import { adopt, begin, call, describe, grade } from './requests.js';

let loads = 0;

/**
 * Loads the file of a plugin, and forgets the one before it.
 *
 * @param file Its path.
 * @param options `config`: what `init` is given. `data`: files by data slot and path, as text or bytes. `tools(name, arguments)`,
 * `programs(program)`, `requests(request)` and `questions(question)` answer as through the gates. A tool's answer may be text or JSON,
 * a program's the text that it printed, and a model's a text.
 * @returns `tools`, the definitions that a model reads; `call(tool, values, facts)`, an observation as `{text, failed,
 * metrics, content}`; and `grade(task, trajectories, grading)`, a score or an `Error` for each trajectory.
 */
export async function load(file, { config = {}, data = {}, tools, programs, requests, questions } = {}) {
  gates.standIns.clear();
  if (tools !== undefined) gates.standIns.set('tools.invoke', ([name, values]) => resultOf(tools(name, values)));
  if (programs !== undefined) gates.standIns.set('execute.run', (program) => reportOf(programs(program)));
  if (requests !== undefined) gates.standIns.set('http.fetch', requests);
  if (questions !== undefined) gates.standIns.set('model.ask', (question) => answerOf(questions(question)));
  registered.readers.push((slot) => {
    if (!Object.hasOwn(data, slot)) throw new Error(`there is no data slot ${JSON.stringify(slot)}`);
    const files = Object.entries(data[slot]).sort(([a], [b]) => (a < b ? -1 : 1));
    return new Map(files.map(([path, text]) => [path, typeof text === 'string' ? new TextEncoder().encode(text) : text]));
  });
  for (const all of [registered.tools, registered.rewards]) all.clear();
  registered.initialisers.length = 0;
  const url = pathToFileURL(file);
  // A file that is loaded again is executed again.
  adopt(await readFile(url, 'utf8'), await import(`${url}?${(loads += 1)}`));
  await begin(config);
  return {
    tools: describe().tools,
    async call(tool, values, { callId = 'test', attempt = 0, trajectoryId = 'test', turn = 0, budgetMs = 0 } = {}) {
      const facts = { call_id: callId, attempt, trajectory_id: trajectoryId, turn, budget_ms: budgetMs };
      const observation = await call(tool, values, facts);
      const text = observation.content.map((part) => part.text ?? part.structured ?? `[${part.image.media_type}]`).join('');
      return { ...observation, text, metrics: Object.fromEntries(observation.metrics) };
    },
    async grade(task, trajectories, grading = {}) {
      const scores = await grade(taskOf(task), trajectories.map(trajectoryOf), { split: 'test', step: 0, steps: 0, ...grading }, () => {});
      return scores.map((score) => ('error' in score ? new Error(score.error) : Object.fromEntries(score.terms)));
    },
  };
}

function resultOf(shown) {
  if (typeof shown === 'string') return { ended: 'ok', text: shown, structured: [] };
  return 'ended' in shown ? shown : { ended: 'ok', text: JSON.stringify(shown), structured: [shown] };
}

function answerOf(answer) {
  return typeof answer === 'string' ? { text: answer, cutShort: false, questionTokens: 0, answerTokens: 0 } : answer;
}

function reportOf(report) {
  if (typeof report !== 'string') return report;
  return { ended: 'ok', outcome: 'completed', exitCode: null, exception: null, stdout: report, stderr: '', files: {}, cpuUs: 0 };
}

function taskOf({ id = 'test', source = 'test', prompt = [], reference = null, extra = {} }) {
  return { id, source, prompt: prompt.map(messageOf), reference: JSON.stringify(reference), extra: pairs(extra) };
}

function trajectoryOf({ answer = null, calls = [], outcomes = [], finish = answer === null ? 'max-turns' : 'answered', finalState = null, verdict = null, extra = {} }) {
  const turn = {
    text: answer ?? '',
    reasoning: null,
    visible: answer ?? '',
    calls: calls.map(({ name, arguments: values = {} }, index) => ({ call_id: `test/${index}`, name, arguments: JSON.stringify(values) })),
    malformed: [],
    tokens: 0,
  };
  const ends = outcomes.map(({ ended = 'ok', text = '' }, index) => ({ outcome: { call_id: `test/${index}`, ended, content: [{ text }], step_reward: null } }));
  return {
    id: 'test',
    tools: [...new Set(calls.map(({ name }) => name))],
    events: [{ turn }, ...ends],
    answer,
    finish,
    final_state: finalState === null ? null : JSON.stringify(finalState),
    verdict,
    extra: pairs(extra),
  };
}

function messageOf(message) {
  return typeof message === 'string' ? { role: 'user', content: [{ text: message }] } : { role: message.role, content: [{ text: message.text }] };
}

function pairs(extra) {
  return Object.entries(extra).map(([name, value]) => [name, JSON.stringify(value)]);
}
