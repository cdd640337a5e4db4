"""The tools that the conformance tests of MCP call."""

import base64

import rlf

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@rlf.tool
def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@rlf.tool
def test_error_handling() -> str:
    """Fails."""
    raise rlf.Failure("This tool intentionally returns an error for testing")


@rlf.tool
def test_image_content() -> rlf.Image:
    """Returns a picture."""
    return rlf.Image(PNG, "image/png")


@rlf.tool
def test_multiple_content_types() -> rlf.Observation:
    """Returns a text, a picture and a value."""
    return rlf.Observation(["Multiple content types test:", rlf.Image(PNG, "image/png"), {"test": "data", "value": 123}])


@rlf.tool
def test_tool_with_progress() -> str:
    """Computes for a while."""
    return str(sum(range(2_000_000)))

