"""`FastMCP` without a server: tools are registered, described and called as FastMCP does it, and `run` returns."""

from .context import Context
from .server import FastMCP

__all__ = ["Context", "FastMCP"]
