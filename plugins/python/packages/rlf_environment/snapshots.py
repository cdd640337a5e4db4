"""A session as a text that another image with the same files continues from."""

import base64
import io
import pickle
import random

from mcp.server.fastmcp.exceptions import out_of_memory

from .answers import INTERNAL, INVALID, Refused, described

VERSION = 3
_ONCE = ("api", "fastmcp")


class Pickler(pickle.Pickler):
    """What a server has once, its object and its FastMCP, is named and not copied: others may refer to it."""

    def __init__(self, out, server):
        # Protocol and bytes are the same in every supported release.
        super().__init__(out, protocol=4)
        once = {name: getattr(server, name, None) for name in _ONCE}
        self.names = {id(value): name for name, value in once.items() if value is not None}

    def persistent_id(self, value):
        return self.names.get(id(value))


class Unpickler(pickle.Unpickler):
    def __init__(self, text, server):
        super().__init__(io.BytesIO(base64.b64decode(text)))
        self.server = server

    def persistent_load(self, name):
        if self.server is None or name not in _ONCE:
            raise pickle.UnpicklingError(f"there is no {name!r}")
        return getattr(self.server, name)


def packed(value, server=None):
    """A pickle as text."""
    out = io.BytesIO()
    Pickler(out, server).dump(value)
    return base64.b64encode(out.getvalue()).decode()


def unpacked(text, server=None):
    return Unpickler(text, server).load()


def taken(session):
    """The session's snapshot, as plain JSON. One that would lack anything is refused: a host that has none plays the
    session's calls again."""
    servers = {}
    for name in session.servers:
        server = session.loaded[name]
        api = server.api
        # One pickle, so that objects shared by the api and the code stay shared.
        whole = (None if api is None else vars(api), server.code.held({server.api_name}))
        servers[name] = kept(whole, name, server)
    functions = {}
    for name, function in session.functions.items():
        if function.code is not None:
            functions[name] = kept(function.code.held(), name)
    return {
        "version": VERSION,
        "task": session.task,
        "seed": session.seed,
        "random": packed(random.getstate()),
        "servers": servers,
        "functions": functions,
    }


def kept(value, name, server=None):
    """`value` as text; says whose it is where it cannot be."""
    try:
        return packed(value, server)
    except Exception as fault:
        if out_of_memory(fault):
            raise
        raise Refused(INTERNAL, f"{name!r} cannot be kept in a snapshot: {described(fault)}") from None


def put_back(session, given):
    """Makes the session, opened with the snapshot's task, what it was."""
    if given.get("version") != VERSION:
        raise Refused(INVALID, f"the snapshot is of version {given.get('version')!r}, not {VERSION}")
    try:
        for name, text in given["servers"].items():
            server = session.loaded[name]
            attributes, held = unpacked(text, server)
            if attributes is not None:
                vars(server.api).clear()
                vars(server.api).update(attributes)
            server.code.put_back(held)
        for name, text in given["functions"].items():
            function = session.functions[name]
            function.loaded()
            function.code.put_back(unpacked(text))
        random.setstate(unpacked(given["random"]))
    except Refused:
        raise
    except Exception as fault:
        if out_of_memory(fault):
            raise
        raise Refused(INVALID, f"the snapshot cannot be restored here: {described(fault)}") from None
