"""Errors of tools."""


class FastMCPError(Exception):
    """Any of them."""


class ToolError(FastMCPError):
    """A call failed; the text is what the caller is shown."""


class InvalidSignature(Exception):
    """A function cannot be a tool."""


class UnknownTool(ToolError):
    """There is no tool of that name."""


def out_of_memory(fault):
    """Whether `fault` says that memory is used up. The parser raises the same for source that is nested too deeply."""
    return isinstance(fault, MemoryError) and not str(fault.args[:1]).startswith("('Parser stack overflowed")
