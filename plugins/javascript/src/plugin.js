// A plugin that is a file: what `init` and the host's requests do. An ES module beside those of sdk/javascript.

import { InvalidComment } from './definitions.js';
import { GateError, gates } from './gates.js';
import { registered } from './index.js';
import * as requests from './requests.js';

/** Executes the file of a plugin: `{file, source, config}`. Returns what is wrong with it, if anything. */
export async function load({ native, remember }, text) {
  const { plugin } = JSON.parse(text);
  if (plugin === undefined) return 'configuration: this interpreter has none; leave its `config` out';
  const { file, source, beside, config } = plugin;
  for (const [name, code] of Object.entries({ ...beside, [file]: source })) {
    native.place(`/${name}`, code);
    remember(`/${name}`, code, 0);
  }
  gates.ask = native.ask;
  registered.readers.push((slot) => new Map(native.entries(slot).map(([path, size]) => [path, native.data(slot, path, Number(size))])));
  try {
    requests.adopt(source, await import(`/${file}`));
    await requests.begin(config);
    return '';
  } catch (error) {
    return `${place(error, file)}: ${error instanceof InvalidComment ? error.message : requests.describeError(error)}`;
  }
}

/** `file:line`: the innermost line of the file on the error's stack. */
function place(error, file) {
  if (error?.line !== undefined) return `${file}:${error.line}`;
  const name = file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const found = new RegExp(`/${name}:(\\d+)`).exec(error?.stack ?? '');
  return found === null ? file : `${file}:${found[1]}`;
}

/** Answers a request, `[function, arguments]`: `{answer}` or `{error}`, as JSON. */
export async function request(text) {
  try {
    const [what, given] = JSON.parse(text);
    return requests.wellFormed(JSON.stringify({ answer: await REQUESTS[what](...given) }));
  } catch (error) {
    const { kind, message } = failure(error);
    if (kind === 'internal' || error instanceof GateError) console.error(error);
    return JSON.stringify({ error: { kind, message: message.toWellFormed() } });
  }
}

/** The contract's error for an exception. */
function failure(error) {
  if (error instanceof requests.NotFound) return { kind: 'not-found', message: requests.describeError(error) };
  if (error instanceof GateError && ['exhausted', 'unavailable'].includes(error.kind)) return { kind: error.kind, message: error.message };
  if (isOutOfMemory(error)) return { kind: 'exhausted', message: 'the call used up its memory' };
  return { kind: 'internal', message: requests.describeError(error) };
}

const REQUESTS = {
  describe: () => requests.describe(),
  call: (name, values, facts) => requests.call(name, JSON.parse(values), facts),
  grade: (task, group, grading) => requests.grade(task, group, grading, (error) => { console.error(error); }),
};

function isOutOfMemory(error) {
  return error?.name === 'InternalError' && error.message === 'out of memory';
}
