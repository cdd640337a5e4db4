"""Servers. Only `fastmcp` is here: nothing is served, tools are called where they are."""

from .fastmcp import FastMCP

__all__ = ["FastMCP"]
