"""A session as a text that another image with the same files continues from."""

import base64
import io
import pickle
import random

from .answers import INVALID, Refused, described
from .servers import mutable_globals, plain

VERSION = 1


def packed(value):
    """A pickle as text. Protocol and bytes are the same on every release that this runs on."""
    out = io.BytesIO()
    pickle.Pickler(out, protocol=4).dump(value)
    return base64.b64encode(out.getvalue()).decode()


def unpacked(text):
    return pickle.loads(base64.b64decode(text))


def taken(session):
    """The session's snapshot, as plain JSON."""
    servers = {}
    for name in session.servers:
        server = session.loaded[name]
        globals_, left_out = {}, []
        for key, value in mutable_globals(server).items():
            try:
                packed(value)
                globals_[key] = value
            except Exception:
                left_out.append(key)
        api = server.api
        entry = {}
        try:
            # One pickle, so that what the object and the module share stays shared.
            entry["pickle"] = packed((None if api is None else vars(api), globals_))
        except Exception as fault:
            entry["scenario"] = plain(server.save_scenario())
            entry["fallback"] = f"the object {server.api_name!r} cannot be pickled ({described(fault)}); its scenario is kept"
        if left_out:
            entry["left_out"] = left_out
        servers[name] = entry
    functions = {}
    for name, function in session.functions.items():
        if function.module is not None:
            kept = {}
            for key, value in vars(function.module).items():
                if key.startswith("__") or callable(value) or type(value).__name__ == "module":
                    continue
                try:
                    packed(value)
                    kept[key] = value
                except Exception:
                    continue
            functions[name] = packed(kept)
    return {
        "version": VERSION,
        "task": session.task,
        "seed": session.seed,
        "random": packed(random.getstate()),
        "servers": servers,
        "functions": functions,
    }


def put_back(session, given):
    """Makes the session, opened with the snapshot's task, what it was. Answers which servers came back by scenario only."""
    if given.get("version") != VERSION:
        raise Refused(INVALID, f"the snapshot is of version {given.get('version')!r}, not {VERSION}")
    by_scenario = {}
    try:
        for name, entry in given["servers"].items():
            server = session.loaded[name]
            if "pickle" in entry:
                attributes, globals_ = unpacked(entry["pickle"])
                if attributes is not None:
                    held = vars(server.api)
                    held.clear()
                    held.update(attributes)
                vars(server.module).update(globals_)
            else:
                server.load_scenario(entry["scenario"])
                by_scenario[name] = entry["fallback"]
        for name, text in given["functions"].items():
            function = session.functions[name]
            function.loaded()
            vars(function.module).update(unpacked(text))
        random.setstate(unpacked(given["random"]))
    except Refused:
        raise
    except Exception as fault:
        raise Refused(INVALID, f"the snapshot cannot be restored here: {described(fault)}") from None
    return by_scenario


