"""Exceptions of plugins."""


class Failure(Exception):
    """A tool raises this to tell the model what is wrong and what to do next, such as "there is no city 'Pariss'".

    The model reads the text as a failed observation. Any other exception is a bug: the call ends without a result, the
    model reads only that the tool broke, and `rlf-host plugin call` shows the traceback.
    """


class InvalidPlugin(Exception):
    """A file cannot be a plugin. The text says which function is wrong and how to correct it."""
