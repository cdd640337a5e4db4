"""What a tool may ask for by a parameter of type `Context`."""

import inspect
import typing


class Context:
    """Nobody listens: what is logged and reported goes nowhere."""

    request_id = "1"
    client_id = None
    session = None
    request_context = None

    def __init__(self, fastmcp=None):
        self.fastmcp = fastmcp

    async def log(self, level, message, **_):
        pass

    async def debug(self, message, **_):
        pass

    async def info(self, message, **_):
        pass

    async def warning(self, message, **_):
        pass

    async def error(self, message, **_):
        pass

    async def report_progress(self, progress, total=None, message=None):
        pass


def context_parameter(function):
    """The name of the parameter that takes the context, if there is one."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        return None
    for name, annotation in hints.items():
        for kind in (annotation, *typing.get_args(annotation)):
            if inspect.isclass(kind) and issubclass(kind, Context):
                return name
    return None
