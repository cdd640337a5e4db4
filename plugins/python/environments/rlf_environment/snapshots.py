"""A session as a text that another image with the same files continues from."""

import base64
import io
import pickle
import random

from mcp.server.fastmcp.exceptions import out_of_memory

from .answers import INTERNAL, INVALID, Refused, described
from .servers import changed_globals, class_attributes, mutable_globals, put_back_globals

VERSION = 2


def packed(value):
    """A pickle as text. Protocol and bytes are the same on every release that this runs on."""
    out = io.BytesIO()
    pickle.Pickler(out, protocol=4).dump(value)
    return base64.b64encode(out.getvalue()).decode()


def unpacked(text):
    return pickle.loads(base64.b64decode(text))


def taken(session):
    """The session's snapshot, as plain JSON. One that would lack anything is refused: a host that has none plays the
    session's calls again."""
    servers = {}
    for name in session.servers:
        server = session.loaded[name]
        api = server.api
        # One pickle, so that what the object, its class and the module share stays shared.
        whole = (None if api is None else vars(api), mutable_globals(server), class_attributes(server))
        servers[name] = kept(whole, name)
    functions = {}
    for name, function in session.functions.items():
        if function.module is not None:
            functions[name] = kept(changed_globals(function.module, function.begins), name)
    return {
        "version": VERSION,
        "task": session.task,
        "seed": session.seed,
        "random": packed(random.getstate()),
        "servers": servers,
        "functions": functions,
    }


def kept(value, name):
    """`value` as text; says whose it is where it cannot be."""
    try:
        return packed(value)
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
            attributes, (globals_, functions), classes = unpacked(text)
            if attributes is not None:
                held = vars(server.api)
                held.clear()
                held.update(attributes)
            put_back_globals(server.module, globals_)
            for function_name, values in functions.items():
                vars(vars(server.module)[function_name]).update(values)
            for class_name, values in classes.items():
                for key, value in values.items():
                    setattr(vars(server.module)[class_name], key, value)
        for name, text in given["functions"].items():
            function = session.functions[name]
            function.loaded()
            put_back_globals(function.module, unpacked(text))
        random.setstate(unpacked(given["random"]))
    except Refused:
        raise
    except Exception as fault:
        if out_of_memory(fault):
            raise
        raise Refused(INVALID, f"the snapshot cannot be restored here: {described(fault)}") from None
