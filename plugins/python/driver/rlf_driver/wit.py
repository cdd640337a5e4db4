"""Numbers that WIT gives to cases, and the one exception that stands for an error of the request."""

COMPLETED, EXITED, RAISED, REJECTED = range(4)
"""Cases of `code.outcome`."""

OK, ERROR = range(2)
"""Cases of a result."""

INVALID_ARGUMENTS, NOT_FOUND, DENIED, EXHAUSTED, UNAVAILABLE, CANCELLED, INTERNAL = range(7)
"""Cases of `types.error`."""


class Refused(Exception):
    """A request that is wrong; the program has not run."""

    def __init__(self, case, message):
        super().__init__(message)
        self.error = (case, message)
