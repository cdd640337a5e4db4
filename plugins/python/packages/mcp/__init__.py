"""The part of the Model Context Protocol's Python package that environments written as one Python file use: `FastMCP`."""

__version__ = "1.30.0"
