"""Results of tools besides plain values."""

from typing import Any, Literal, Optional

from pydantic import BaseModel


class TextContent(BaseModel):
    """A text."""

    model_config = {"extra": "allow"}
    type: Literal["text"]
    text: str


class CallToolResult(BaseModel):
    """A whole answer, told as it is to be shown."""

    model_config = {"extra": "allow"}
    content: list[TextContent]
    structuredContent: Optional[dict[str, Any]] = None
    isError: bool = False
