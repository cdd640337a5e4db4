// Other tools, programs, HTTP and language models, for plugins to which the operator opens the gates `tools`, `execute`, `http` and
// `model`.

/** A request that was not carried out. `kind` is `denied` (the gate is not open), `not-found`, `invalid-arguments`,
 * `exhausted` (more requests than a call may make, or a budget is spent) or `unavailable` (a model's answer does not fit the schema). */
export class GateError extends Error {
  name = 'GateError';

  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** The answer of a server: `status`, `headers` (pairs) and `body` (bytes). */
export class Response {
  constructor(status, headers = [], body = new Uint8Array()) {
    this.status = status;
    this.headers = headers;
    this.body = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  }

  /** The body, as UTF-8. */
  text() {
    return new TextDecoder().decode(this.body);
  }

  /** The body, parsed as JSON. */
  json() {
    return JSON.parse(this.text());
  }
}

/** The functions that carry out requests: `ask` is the host's, from kind and JSON to JSON; `standIns` are those of a test, by kind. */
export const gates = { ask: undefined, standIns: new Map() };

/** `name`, `description` and `input_schema` of each tool that can be called. */
export function listTools() {
  return gates.ask === undefined ? [] : JSON.parse(gates.ask('tools.list', '[]'));
}

/** Calls another tool. Returns `ended`, `text` (what a model would read, or null) and `structured` (its parts that are JSON).
 * Throws `GateError` if no call was made. */
export function callTool(name, values = {}) {
  return only(callTools([[name, values]]));
}

/** Calls tools side by side: `[name, arguments]` each. Returns a result or a `GateError` for each, in order. */
export function callTools(calls) {
  return answers('tools.invoke', calls, ([name, values]) => ({ name, arguments: JSON.stringify(values) }), toolResult);
}

/** Runs a program. `options`: see `runPrograms`. Throws `GateError` if it was not run. */
export function runProgram(code, options = {}) {
  return only(runPrograms([{ code, ...options }]));
}

/**
 * Runs programs side by side, each in an instance of its own.
 *
 * @param programs `code`, and optionally `language` (default `python`), `arguments`, `stdin`, `files` (by path), `fetch` (paths
 * of files to return), `seed`, `timeMs` (default 2000), `memoryBytes`, `outputBytes`, `fileBytes`.
 * @returns For each a `GateError`, or a report: `ended`, `outcome`, `exitCode`, `exception`, `stdout`, `stderr`, `files`, `cpuUs`.
 */
export function runPrograms(programs) {
  return answers('execute.run', programs, programOf, reportOf);
}

/** Makes an HTTP request. `options`: `method`, `headers` (texts, or `{secret: NAME}`) and `body`. Throws `GateError` if there is
 * no answer. */
export function fetch(url, options = {}) {
  return only(fetchAll([{ url, ...options }]));
}

/** Makes HTTP requests side by side: `url`, and the options of `fetch`. Returns a `Response` or a `GateError` for each. */
export function fetchAll(requests) {
  return answers('http.fetch', requests, requestOf, ({ status, headers, body }) => new Response(status, headers, bytesOf(body)));
}

/** `name`, `max_tokens` and `context_tokens` of each language model that can be asked. A limit of 0 is not known. */
export function listModels() {
  return gates.ask === undefined ? [] : JSON.parse(gates.ask('model.list', '[]'));
}

/** Asks a language model. `messages` is a text of the user, or `[role, text]` each. `options`: `model`, `maxTokens`, `temperature`, and
 * `schema`, the JSON Schema that the answer must fit: its root has the type `object`, and the answer's text is then the JSON alone. The
 * messages must say the form, too: not every model is told the schema. Returns `text`, `cutShort`, `promptTokens` and
 * `completionTokens`. Throws `GateError` if the question was not asked, or if its answer does not fit. */
export function askModel(messages, options = {}) {
  return only(askModels([{ messages, ...options }]));
}

/** Asks questions side by side: `messages`, and the options of `askModel`. Returns an answer or a `GateError` for each. */
export function askModels(questions) {
  return answers('model.ask', questions, questionOf, answerOf);
}

/** Asks the policy for its turn in a trajectory that the plugin leads. `request` has the form of OpenAI's chat completions: `messages`,
 * and perhaps `tools` and `max_tokens`. Returns the assistant's message in OpenAI's form. Throws `GateError` if there is no turn. */
export function chat(request, { model = '' } = {}) {
  const { message, text } = only(askModels([{ messages: [], model, chat: request }]));
  return message ?? { role: 'assistant', content: text };
}

function answers(kind, requests, encode, decode) {
  const standIn = gates.standIns.get(kind);
  if (standIn !== undefined) return requests.map((request) => stoodIn(standIn, request));
  if (gates.ask === undefined) {
    return requests.map(() => new GateError('denied', `the gate \`${kind.split('.')[0]}\` is not open`));
  }
  const answered = JSON.parse(gates.ask(kind, JSON.stringify(requests.map(encode))));
  if (!Array.isArray(answered)) throw errorOf(answered);
  return answered.map((answer) => ('error' in answer ? errorOf(answer) : decode(answer)));
}

function stoodIn(standIn, request) {
  try {
    return standIn(request);
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
}

function only([answer]) {
  if (answer instanceof GateError) throw answer;
  return answer;
}

function errorOf({ error: { kind, message } }) {
  return new GateError(kind, message);
}

function base64(data = '') {
  return Buffer.from(data).toString('base64');
}

function bytesOf(text) {
  return new Uint8Array(Buffer.from(text, 'base64'));
}

function toolResult({ ended, observation }) {
  if (observation === null) return { ended, text: null, structured: [] };
  const text = observation.content.map((part) => part.text ?? part.structured ?? `[${part.media_type}]`).join('');
  const structured = observation.content.filter((part) => part.structured !== undefined).map((part) => JSON.parse(part.structured));
  return { ended, text, structured };
}

function mapped(object, change) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

function programOf({ code, language = 'python', arguments: given = [], stdin, files = {}, fetch: fetched = [], seed = 0, timeMs = 2000, memoryBytes = 0, outputBytes = 0, fileBytes = 0 }) {
  const limits = { wall_ms: timeMs, memory_bytes: memoryBytes, output_bytes: outputBytes, file_bytes: fileBytes };
  return { language, code, arguments: given, stdin: base64(stdin), files: mapped(files, base64), fetch: fetched, seed, limits };
}

function reportOf({ ended, outcome, exit_code: exitCode, exception, stdout, stderr, files, cpu_us: cpuUs }) {
  return { ended, outcome, exitCode, exception, stdout, stderr, files: mapped(files, bytesOf), cpuUs };
}

function requestOf({ url, method = 'GET', headers = {}, body }) {
  const value = (given) => (typeof given === 'string' ? { text: given } : { secret: given.secret });
  return { method, url, headers: Object.entries(headers).map(([name, given]) => [name, value(given)]), body: base64(body) };
}

function questionOf({ messages, model = '', maxTokens = 0, temperature = null, chat: request, schema }) {
  const pairs = typeof messages === 'string' ? [['user', messages]] : messages;
  const question = { model, messages: pairs.map(([role, text]) => ({ role, text })), max_tokens: maxTokens, temperature };
  if (request !== undefined) question.chat = JSON.stringify(request);
  if (schema !== undefined) question.schema = JSON.stringify(schema);
  return question;
}

function answerOf({ text, cut_short: cutShort, prompt_tokens: promptTokens, completion_tokens: completionTokens, message }) {
  const answer = { text, cutShort, promptTokens, completionTokens };
  return message === undefined ? answer : { ...answer, message };
}
