"""Conversations in the forms that trainers keep them, as the host reads them.

A model wrote them, so nothing in them is an error: what the host cannot read is replaced.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _native

Conversation = str | Sequence[Mapping[str, Any]]

#: The host's names for roles that trainers name differently.
ROLES = {"developer": "system", "function": "tool"}


def conversation(given: Conversation) -> list[dict[str, Any]]:
    """The messages of a conversation, in the host's form.

    A text is one message of the assistant. Messages may have the form of OpenAI's chat completions, where a call's
    arguments are JSON in a string, or the host's own. Fields that rewards do not read are dropped.

        >>> conversation("5")
        [{'role': 'assistant', 'content': '5'}]
    """
    if isinstance(given, str):
        return [{"role": "assistant", "content": readable(given)}]
    if isinstance(given, Mapping):
        raise TypeError("a conversation is a text or a list of messages, and this is one message; put it into a list")
    return [_message(message) for message in given]


def readable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which has no UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dumps(value: Any) -> str:
    """JSON of a value that a model wrote. Nesting that Python cannot follow becomes a text that says so."""
    try:
        return json.dumps(value)
    except RecursionError:
        return json.dumps("too deeply nested")


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message["role"]
    kept: dict[str, Any] = {"role": ROLES.get(role, role), "content": _content(message.get("content"))}
    if message.get("reasoning_content"):
        kept["reasoning_content"] = readable(str(message["reasoning_content"]))
    calls = message.get("tool_calls") or ()
    if calls:
        kept["tool_calls"] = [_call(call) for call in calls]
    if message.get("tool_call_id"):
        kept["tool_call_id"] = readable(str(message["tool_call_id"]))
    return kept


def _content(content: Any) -> Any:
    if content is None:
        return None
    if isinstance(content, str):
        return readable(content)
    return [_part(part) for part in content]


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": readable(part)}
    if "text" in part:
        return {"text": readable(str(part["text"]))}
    return {"text": f"[{part['type']}]"} if "type" in part else dict(part)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or call
    arguments = function.get("arguments", {})
    text = arguments if isinstance(arguments, str) else dumps(arguments)
    # Arguments that are no JSON stay as the model wrote them.
    value: Any = json.loads(text) if _native.is_json(text) else readable(text)
    kept = {"name": readable(str(function.get("name") or "")), "arguments": value}
    call_id = call.get("call-id") or call.get("id")
    return {**kept, "call-id": readable(str(call_id))} if call_id else kept
