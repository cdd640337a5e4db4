"""What goes wrong with a tool."""


class FastMCPError(Exception):
    """Any of them."""


class ToolError(FastMCPError):
    """A call failed; the text is what the caller is shown."""


class InvalidSignature(Exception):
    """A function cannot be a tool."""


class UnknownTool(ToolError):
    """There is no tool of that name."""
