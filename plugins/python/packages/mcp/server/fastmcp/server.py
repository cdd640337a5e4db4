"""`FastMCP`: where a file registers its tools."""

from .context import Context
from .exceptions import UnknownTool
from .tools import Tool


class FastMCP:
    """The tools of a file. What a server would need besides its name is taken and ignored."""

    # Newest last: a caller that executes a file finds here the servers that it made, whatever their names.
    made = []

    def __init__(self, name=None, instructions=None, *_, tools=None, **ignored):
        self.name = name or "FastMCP"
        self.instructions = instructions
        self.settings = ignored
        self.tools = {}
        for tool in tools or ():
            self.tools.setdefault(tool.name, tool)
        FastMCP.made.append(self)

    def tool(self, name=None, title=None, description=None, annotations=None, icons=None, meta=None, structured_output=None):
        """Registers a function, as `@mcp.tool()`; bare, as `@mcp.tool`, too."""
        if callable(name):
            self.add_tool(name)
            return name

        def register(function):
            self.add_tool(function, name, title, description, structured_output=structured_output)
            return function

        return register

    def add_tool(self, fn, name=None, title=None, description=None, annotations=None, icons=None, meta=None, structured_output=None):  # fmt: skip
        """The first tool of a name stays."""
        tool = Tool(fn, name, title, description, structured_output)
        return self.tools.setdefault(tool.name, tool)

    def remove_tool(self, name):
        if name not in self.tools:
            raise UnknownTool(f"Unknown tool: {name}")
        del self.tools[name]

    def call(self, name, arguments):
        """The texts of a call's result; raises `ToolError`."""
        if name not in self.tools:
            raise UnknownTool(f"Unknown tool: {name}")
        return self.tools[name].run(arguments, self)

    def get_context(self):
        return Context(self)

    def resource(self, uri, **_):
        """Nothing reads resources here; the function stays what it is."""
        return lambda function: function

    def prompt(self, *_, **__):
        """Nothing asks for prompts here; the function stays what it is."""
        return lambda function: function

    def run(self, transport="stdio", mount_path=None):
        """Nothing to serve: tools are called by whoever executed the file."""
