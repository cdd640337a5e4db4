/** Leads trajectories: asks the policy for a turn, makes its calls, and goes on until it answers. */
import { callTools, chat, Failure, GateError } from 'rlf';

/**
 * Leads the trajectory of one task.
 *
 * @tool
 * @param {string} id The task's id.
 * @param {string} source The task's data set.
 * @param {object[]} messages The task's prompt, in OpenAI's form.
 * @param {object[]} tools The task's tools, in OpenAI's form.
 */
export function NAME(id, source, messages, tools) {
  for (;;) {
    let said;
    try {
      // A turn of the policy. Training counts each token that it samples here once.
      said = chat({ messages, tools });
    } catch (error) {
      // For example, the turns are used up. What happened until then is graded.
      throw error instanceof GateError ? new Failure(error.message) : error;
    }
    const made = said.tool_calls ?? [];
    // The answer is in the policy's last turn. An agent may return one: a text, or { answer, reward }.
    if (made.length === 0) return undefined;
    const results = callTools(made.map((call) => [call.function.name, JSON.parse(call.function.arguments)]));
    messages.push(said);
    // The policy waits for one result of each call. A shorter or another history would be a new conversation.
    for (const [index, done] of results.entries()) {
      const content = done instanceof GateError ? done.message : (done.text ?? '');
      messages.push({ role: 'tool', tool_call_id: made[index].id, content });
    }
  }
}
