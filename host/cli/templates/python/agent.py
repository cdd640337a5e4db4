"""Leads trajectories: asks the policy for a turn, makes its calls, and goes on until it answers."""

import json

import rlf


@rlf.tool
def NAME(id: str, source: str, messages: list, tools: list) -> None:
    """Leads the trajectory of one task.

    Args:
        id: The task's id.
        source: The task's data set.
        messages: The task's prompt, in OpenAI's form.
        tools: The task's tools, in OpenAI's form.
    """
    while True:
        try:
            # A turn of the policy. Training counts each token that it samples here once.
            said = rlf.chat({"messages": messages, "tools": tools})
        except rlf.GateError as error:
            # For example, the turns are used up. What happened until then is graded.
            raise rlf.Failure(error.message) from None
        made = said.get("tool_calls", [])
        if not made:
            # The answer is in the policy's last turn. An agent may return one: a text, or {"answer": .., "reward": ..}.
            return
        calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in made]
        messages.append(said)
        # The policy waits for one result of each call. A shorter or another history would be a new conversation.
        for call, done in zip(made, rlf.call_tools(calls)):
            text = done.message if isinstance(done, rlf.GateError) else done.text or ""
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
