"""Conversations in the forms that trainers keep them, as the host reads them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Conversation = str | Sequence[Mapping[str, Any]]


def conversation(given: Conversation) -> list[dict[str, Any]]:
    """The messages of a conversation, in the host's form.

    A text is one message of the assistant. Messages may have the form of OpenAI's chat completions, where a call's
    arguments are JSON in a string and a tool's answer names its call, or the host's own. Fields that rewards do not read
    are dropped.

        >>> conversation("5")
        [{'role': 'assistant', 'content': '5'}]
    """
    if isinstance(given, str):
        return [{"role": "assistant", "content": given}]
    return _in_call_order([_message(message) for message in given])


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    # What the host calls the model's own turn and its instructions, whatever the trainer calls them.
    role = {"developer": "system", "function": "tool"}.get(message["role"], message["role"])
    kept: dict[str, Any] = {"role": role, "content": _content(message.get("content"))}
    if message.get("reasoning_content"):
        kept["reasoning_content"] = message["reasoning_content"]
    calls = message.get("tool_calls") or ()
    if calls:
        kept["tool_calls"] = [_call(call) for call in calls]
    if role == "tool" and message.get("tool_call_id"):
        kept["tool_call_id"] = message["tool_call_id"]
    return kept


def _content(content: Any) -> Any:
    if not isinstance(content, Sequence) or isinstance(content, str):
        return content
    return [_part(part) for part in content]


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping) or "type" not in part:
        return {"text": part} if isinstance(part, str) else part
    return {"text": part["text"]} if "text" in part else {"text": f"[{part['type']}]"}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            pass  # As the model wrote them.
    kept = {"name": function["name"], "arguments": arguments}
    call_id = call.get("call-id") or call.get("id")
    return {**kept, "call-id": call_id} if call_id else kept


def _in_call_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Puts the answers of one turn into the order of its calls, which is how the host finds the call of an answer."""
    ordered: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    run: list[dict[str, Any]] = []

    def flush() -> None:
        run.sort(key=lambda message: places.get(message.get("tool_call_id", ""), len(places)))
        for message in run:
            message.pop("tool_call_id", None)
        ordered.extend(run)
        run.clear()

    for message in messages:
        if message["role"] == "tool":
            run.append(message)
            continue
        flush()
        ordered.append(message)
        if message["role"] == "assistant":
            calls = message.get("tool_calls", ())
            places = {call.get("call-id", ""): place for place, call in enumerate(calls)}
    flush()
    return ordered
