// Tools and rewards for rlf-host. See README.md.

import { checkName, hintsOf } from './definitions.js';

export { askModel, askModels, callTool, callTools, chat, fetch, fetchAll, GateError, listModels, listTools, Response, runProgram, runPrograms } from './gates.js';

/**
 * A tool throws this to tell the model what is wrong and what to do next, such as "there is no city 'Pariss'".
 *
 * The model reads the text as a failed observation. Any other error is a bug: the call ends without a result, the model
 * reads only that the tool broke, and `rlf-host plugin call` shows the stack.
 */
export class Failure extends Error {
  name = 'Failure';
}

/** A picture: bytes and their media type, such as `new Image(png, 'image/png')`. */
export class Image {
  constructor(data, mediaType) {
    this.data = data;
    this.mediaType = mediaType;
  }
}

/**
 * A result with more than one part, with numbers for the trainer, or marked as failed. Tools may return any other value
 * instead: text, numbers and booleans are shown as text, other values as JSON, `undefined` and `null` as nothing.
 */
export class Observation {
  /**
   * @param content Its parts, in order: texts, `Image`s, or any value that has a JSON form.
   * @param options `failed`: the model reads it as a failure. `metrics`: numbers for the trainer's logs, by name.
   */
  constructor(content, { failed = false, metrics = {} } = {}) {
    this.content = content;
    this.failed = failed;
    this.metrics = metrics;
  }
}

/** Named terms of a score, credit for single events, and numbers for the logs. */
export class Terms {
  perEvent = [];
  metrics = {};

  constructor(terms = {}) {
    this.terms = { ...terms };
  }

  /** Credits one event, by its index in `trajectory.events`. */
  atEvent(event, name, value) {
    this.perEvent.push([event, name, value]);
    return this;
  }

  /** Adds a number for the trainer's logs that is not part of the reward. */
  metric(name, value) {
    this.metrics[name] = value;
    return this;
  }
}

/** What this plugin has registered so far. */
export const registered = { tools: new Map(), rewards: new Map(), initialisers: [], readers: [] };

/**
 * Makes a function a tool, with a JSON Schema of its arguments. The function is called with the arguments as one object,
 * and with facts about the call: `callId`, `attempt`, `trajectoryId`, `turn`, `budgetMs`.
 *
 * @param about `name` (default: the function's), `description`, `parameters` (a JSON Schema of type `object`), `output` (a
 * JSON Schema of the result), and the promises `readOnly`, `idempotent`, `deterministic`, `openWorld`; `pure` is the first
 * three.
 * @returns The function, which stays what it is, so a test can call it.
 */
export function tool(about, run) {
  if (typeof run !== 'function') throw new TypeError('tool(about, function): the second argument is the function');
  const { name = run.name, description = '', parameters = { type: 'object', properties: {} }, output = null } = about;
  if (parameters.type !== 'object') {
    throw new TypeError(`${name}: \`parameters\` is a JSON Schema with type 'object' and \`properties\``);
  }
  add(registered.tools, 'tool', {
    name: checkName(name, 'tool'),
    description,
    inputSchema: { additionalProperties: false, ...parameters },
    outputSchema: output,
    hints: hintsOf(about),
    run: (values, context) => run(values, context),
  });
  return run;
}

/**
 * Makes a function a reward. It is called with the task, the trajectory and the moment of training, for each trajectory.
 * With `group: true` it is called once with all trajectories of a task, and returns an array.
 *
 * For one trajectory it returns a number, which is a term with the reward's name; an object of terms; or `Terms`. If it
 * throws, the trajectory is excluded from its group: it is not scored 0.
 *
 * @param about `name` (default: the function's) and `group`.
 */
export function reward(about, run) {
  if (typeof run !== 'function') throw new TypeError('reward(about, function): the second argument is the function');
  const { name = run.name, group = false } = about;
  add(registered.rewards, 'reward', { name: checkName(name, 'reward'), group, run });
  return run;
}

/** Registers a definition under its name. */
export function add(all, what, definition) {
  if (all.has(definition.name)) {
    throw new TypeError(`there are two ${what}s named ${JSON.stringify(definition.name)}; give one another name`);
  }
  all.set(definition.name, definition);
}

/**
 * Registers a function that is called once, after the file was executed, with the operator's configuration. What it keeps
 * in variables is there in every call. What it throws is the reason why the plugin is not loaded.
 */
export function init(run) {
  if (registered.initialisers.length > 0) throw new TypeError('there are two functions given to init');
  registered.initialisers.push(run);
}

/**
 * The files that the operator bound to a data slot: a Map from path to bytes (`Uint8Array`), sorted by path.
 * `plugin.toml` names the slots of the plugin, as in `data = ["corpus"]`.
 */
export function data(slot) {
  const reader = registered.readers.at(-1);
  if (reader === undefined) throw new Error(`there is no data slot ${JSON.stringify(slot)}`);
  return reader(slot);
}
