"""A function as a tool: described by its signature and docstring, called with arguments as they come from a model."""

import functools
import inspect

from .context import Context, context_parameter
from .exceptions import ToolError, out_of_memory
from .results import texts
from .signature import arguments_model, keywords, parsed, result_model, signature_of


class Tool:
    """One tool. Its schemas are made here, once."""

    def __init__(self, function, name=None, title=None, description=None, structured_output=None):
        self.fn = function
        self.name = name or function.__name__
        if self.name == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        self.title = title
        self.description = description or function.__doc__ or ""
        self.is_async = is_async(function)
        self.context_parameter = context_parameter(function)
        signature = signature_of(function)
        self.arguments = arguments_model(function, signature, self.context_parameter)
        self.parameters = self.arguments.model_json_schema(by_alias=True)
        self.result, self.wrapped = (None, False) if structured_output is False else result_model(function, signature)
        self.output_schema = None if self.result is None else self.result.__pydantic_output_schema__

    def run(self, arguments, server=None):
        """The texts of the result; whatever goes wrong is a `ToolError`, but for memory that is used up."""
        try:
            validated = self.arguments.model_validate(parsed(self.arguments, arguments))
            given = keywords(self.arguments, validated)
            if self.context_parameter is not None:
                given[self.context_parameter] = Context(server)
            try:
                result = self.fn(**given)
            except StopIteration as stop:
                # A coroutine calls the functions, and it cannot end with StopIteration.
                raise RuntimeError("coroutine raised StopIteration") from stop
            if self.is_async:
                result = awaited(result)
            found = texts(result)
            self.check(result)
            return found
        except Exception as error:
            if out_of_memory(error):
                raise
            raise ToolError(f"Error executing tool {self.name}: {error}") from error

    def check(self, result):
        """A result that is not what its annotation says is an error, and so is one that is no JSON."""
        if self.result is not None:
            self.result.model_validate({"result": result} if self.wrapped else result).model_dump(mode="json", by_alias=True)


def is_async(function):
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def awaited(coroutine):
    """The result of a coroutine."""
    import asyncio

    return asyncio.run(coroutine)
