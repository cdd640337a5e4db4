"""From what a tool returned to the texts that are shown."""

from mcp.types import CallToolResult, TextContent
from pydantic_core import to_json


def texts(result):
    """The texts of a result: a text as it is, a list item by item, `None` as nothing, all else as JSON."""
    if result is None:
        return []
    if isinstance(result, TextContent):
        return [result.text]
    if isinstance(result, CallToolResult):
        return [content.text for content in result.content]
    if isinstance(result, (list, tuple)):
        return [text for item in result for text in texts(item)]
    if not isinstance(result, str):
        return [to_json(result, fallback=str, indent=2).decode()]
    return [str.__str__(result)]
