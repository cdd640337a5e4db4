// What a host asks of a plugin. Arguments and answers are what JSON has; no mistake of a plugin or a model is thrown.

import { Failure, Image, Observation, Terms, add, registered } from './index.js';
import { InvalidComment, marked } from './definitions.js';
import { GateError } from './gates.js';
import { Task, Trajectory } from './trajectories.js';

/** Registers the exported functions that a comment of the file marks. `exported` has the file's exports. */
export function adopt(source, exported) {
  for (const { line, kind, exported: name, ...found } of marked(source)) {
    const run = exported[name];
    if (typeof run !== 'function') throw new InvalidComment(line, `@${kind} is for a function, and ${name} is none`);
    if (kind === 'reward') {
      add(registered.rewards, kind, { ...found, run });
      continue;
    }
    const { parameters, ...about } = found;
    const own = parameters.filter(({ isContext }) => !isContext);
    const inputSchema = {
      type: 'object',
      properties: Object.fromEntries(own.map((one) => [one.name, one.schema])),
      required: own.filter(({ required }) => required).map((one) => one.name),
      additionalProperties: false,
    };
    const inOrder = (values, context) => parameters.map((one) => (one.isContext ? context : values[one.name]));
    add(registered.tools, kind, { ...about, inputSchema, run: (values, context) => run(...inOrder(values, context)) });
  }
}

/** Calls the function given to `init`, and checks that there is something to offer. */
export async function begin(config) {
  for (const initialise of registered.initialisers) await initialise(config);
  if (registered.tools.size === 0 && registered.rewards.size === 0) {
    throw new TypeError('no exported function has @tool or @reward in the comment before it');
  }
}

/** The definitions of the tools, and the names of the rewards. */
export function describe() {
  const tools = [...registered.tools.values()].map((tool) => ({
    name: tool.name,
    description: tool.description,
    input_schema: tool.inputSchema,
    output_schema: tool.outputSchema,
    hints: tool.hints,
  }));
  return { tools, rewards: [...registered.rewards.keys()] };
}

/** Calls a tool: its observation. `Failure` becomes a failed one; another error is thrown. */
export async function call(name, values, facts) {
  const tool = registered.tools.get(name);
  if (tool === undefined) throw new NotFound(`there is no tool ${JSON.stringify(name)}`);
  const { call_id: callId, attempt, trajectory_id: trajectoryId, turn, budget_ms: budgetMs } = facts;
  try {
    const result = await tool.run(values, { callId, attempt, trajectoryId, turn, budgetMs });
    return encoded(observationOf(result));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return encoded(new Observation([error.message], { failed: true }));
  }
}

/** A request for something that is not there. */
export class NotFound extends Error {}

function observationOf(value) {
  if (value instanceof Observation) return value;
  return new Observation(value === undefined || value === null ? [] : [value]);
}

function encoded({ content, failed, metrics }) {
  return { content: content.map(part), failed: Boolean(failed), metrics: Object.entries(metrics).map(([name, value]) => [name, number(name, value)]) };
}

/** A part of an observation, in the form that the host reads. */
function part(value) {
  if (typeof value === 'string') return { text: value.toWellFormed?.() ?? value };
  if (['number', 'boolean', 'bigint'].includes(typeof value)) return { text: String(value) };
  if (value instanceof Image) {
    return { image: { media_type: value.mediaType, data: Buffer.from(value.data).toString('base64') } };
  }
  const structured = JSON.stringify(value);
  if (structured === undefined) throw new TypeError(`a tool returned a ${typeof value}, which has no JSON form; return text, numbers, arrays or objects`);
  return { structured: wellFormed(structured) };
}

/** JSON without halves of surrogate pairs, which UTF-8 cannot carry. `JSON.stringify` escapes them, and only them. */
export function wellFormed(json) {
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
}

/** Grades a group by all rewards: for each trajectory its score, or `{error}`, which excludes it. */
export async function grade(task, group, { split, step, steps }, print) {
  const given = [new Task(task), group.map((one) => new Trajectory(one)), { split, step, steps }];
  let scores = group.map(() => new Terms());
  for (const reward of registered.rewards.values()) {
    const results = await graded(reward, ...given);
    scores = scores.map((score, index) => sum(reward, score, results[index]));
  }
  // Not the plugin's doing, so no trajectory is graded without it.
  const unavailable = scores.find((score) => score instanceof Excluded && score.error instanceof GateError && score.error.kind === 'unavailable');
  if (unavailable !== undefined) throw unavailable.error;
  return scores.map((score) => {
    if (score instanceof Excluded) {
      print(score.error);
      return { error: describeError(score.error) };
    }
    return { terms: Object.entries(score.terms), per_event: score.perEvent, metrics: Object.entries(score.metrics) };
  });
}

/** The error that excludes a trajectory from its group. */
class Excluded {
  constructor(error) {
    this.error = error;
  }
}

/** What a reward returns for each trajectory of a group. */
async function graded(reward, task, group, grading) {
  const attempt = async (what) => {
    try {
      return await reward.run(task, what, grading);
    } catch (error) {
      return new Excluded(error);
    }
  };
  if (!reward.group) {
    const results = [];
    for (const trajectory of group) results.push(await attempt(trajectory));
    return results;
  }
  const results = await attempt(group);
  if (Array.isArray(results) && results.length === group.length) return results;
  const wrong = results instanceof Excluded ? results : new Excluded(new Error(`${reward.name} returned ${Array.isArray(results) ? `${results.length} scores` : 'no array'} for ${group.length} trajectories`));
  return group.map(() => wrong);
}

/** The terms so far, and those of one more reward. */
function sum(reward, score, result) {
  if (score instanceof Excluded || result instanceof Excluded) return score instanceof Excluded ? score : result;
  try {
    const more = termsOf(reward, result);
    for (const [name, value] of Object.entries(more.terms)) {
      if (Object.hasOwn(score.terms, name)) throw new Error(`two rewards give the term ${JSON.stringify(name)}`);
      score.terms[name] = number(`${reward.name}: the term ${name}`, value);
    }
    for (const [event, name, value] of more.perEvent) score.perEvent.push([event, name, number(`${reward.name}: the term ${name}`, value)]);
    for (const [name, value] of Object.entries(more.metrics)) score.metrics[name] = number(`${reward.name}: the metric ${name}`, value);
    return score;
  } catch (error) {
    return new Excluded(error);
  }
}

function termsOf(reward, result) {
  if (result instanceof Terms) return result;
  if (typeof result === 'number' || typeof result === 'boolean') return new Terms({ [reward.name]: result });
  if (result !== null && typeof result === 'object' && !Array.isArray(result)) return new Terms(result);
  throw new TypeError(`${reward.name} returned ${result === null ? 'null' : Array.isArray(result) ? 'an array' : `a ${typeof result}`}; return a number, an object of numbers or Terms`);
}

function number(what, value) {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new TypeError(`${what} is ${value}, which is not a finite number`);
  return value;
}

/** `Type: message`. */
export function describeError(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${String(error)}`;
}
