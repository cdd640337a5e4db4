// What a reward is given, made from the form in which the host sends it.

/** A task of a data set: `id`, `source`, `prompt` (messages), `reference`, `extra`. */
export class Task {
  constructor(given) {
    this.id = given.id;
    this.source = given.source;
    this.prompt = given.prompt.map(messageOf);
    this.reference = JSON.parse(given.reference);
    this.extra = extraOf(given.extra);
  }

  /**
   * The answers that the reference accepts: a text, a number or a boolean, an array of them, or an object with one of them
   * under `target`, `answer`, `answers`, `ground_truth` or `text`.
   */
  acceptedAnswers() {
    const answers = answersOf(this.reference);
    if (answers.length === 0) throw new Error("the task's reference lists no answers");
    return answers;
  }
}

/**
 * One attempt at a task: `id`, `tools` (names), `events`, `answer` (or null), `finish`, `finalState`, `verdict` (or null),
 * `extra`. An event has a `type`: `turn`, `outcome` or `user`.
 */
export class Trajectory {
  constructor(given) {
    this.id = given.id;
    this.tools = given.tools;
    this.events = given.events.map(eventOf);
    this.answer = given.answer;
    this.finish = given.finish;
    this.finalState = given.final_state === null ? null : JSON.parse(given.final_state);
    this.verdict = given.verdict;
    this.extra = extraOf(given.extra);
  }

  /** The model's turns, in order: `text`, `reasoning`, `visible`, `calls`, `malformed`, `tokens`. */
  turns() {
    return this.events.filter(({ type }) => type === 'turn');
  }

  /** The ends of calls, in order: `callId`, `ended`, `text` (or null), `structured`, `stepReward` (or null). */
  outcomes() {
    return this.events.filter(({ type }) => type === 'outcome');
  }

  /** The calls of all turns, in order: `callId`, `name`, `arguments`. */
  calls() {
    return this.turns().flatMap(({ calls }) => calls);
  }
}

const ANSWER_KEYS = ['target', 'answer', 'answers', 'ground_truth', 'text'];

function answersOf(reference) {
  if (typeof reference === 'string') return [reference];
  if (typeof reference === 'boolean') return [reference ? 'yes' : 'no'];
  if (typeof reference === 'number') return [JSON.stringify(reference)];
  if (Array.isArray(reference)) return reference.flatMap(answersOf);
  const key = ANSWER_KEYS.find((name) => reference !== null && Object.hasOwn(reference, name));
  if (key !== undefined) return answersOf(reference[key]);
  const found = reference === null ? 'null' : `an object with the keys ${Object.keys(reference).join(', ')}`;
  throw new Error(`the task's reference is ${found}; expected text, a number, an array of them, or an object with one under ${ANSWER_KEYS.join(', ')}`);
}

function extraOf(pairs) {
  return Object.fromEntries(pairs.map(([name, value]) => [name, JSON.parse(value)]));
}

function messageOf({ role, content }) {
  return { type: 'user', role, text: textOf(content) };
}

function textOf(content) {
  return content.map((part) => part.text ?? part.structured ?? `[${part.media_type}]`).join('');
}

function eventOf(given) {
  if (given.turn) {
    const { calls, ...turn } = given.turn;
    return {
      type: 'turn',
      ...turn,
      calls: calls.map((call) => ({ callId: call.call_id, name: call.name, arguments: JSON.parse(call.arguments) })),
    };
  }
  if (given.outcome) {
    const { call_id: callId, ended, content, step_reward: stepReward } = given.outcome;
    const structured = (content ?? []).filter((part) => part.structured !== undefined).map((part) => JSON.parse(part.structured));
    return { type: 'outcome', callId, ended, text: content === null ? null : textOf(content), structured, stepReward };
  }
  return messageOf(given.user);
}
