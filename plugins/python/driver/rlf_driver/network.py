"""The names that `socket` lacks where CPython was built for a system without a network.

Programs that try their luck find an error as on a machine that is cut off, and not a missing function.
"""

from .sound import __builtins__  # isort: skip

import _socket
import socket

_LOOKUPS = (
    "getaddrinfo",
    "gethostbyaddr",
    "gethostbyname",
    "gethostbyname_ex",
    "getnameinfo",
    "getservbyname",
    "getservbyport",
)


def _unknown(*arguments, **named):
    """No name is known here."""
    raise _socket.gaierror(_socket.EAI_NONAME, "Name or service not known")


def _hostname():
    """The name of this machine, as far as it has one."""
    return "localhost"


def install():
    """Adds the functions that are missing."""
    for name in _LOOKUPS:
        offer(name, _unknown)
    offer("gethostname", _hostname)


def offer(name, function):
    """Makes `function` the function `name` of `socket` where there is none."""
    if not hasattr(_socket, name):
        setattr(_socket, name, function)
        setattr(socket, name, function)
