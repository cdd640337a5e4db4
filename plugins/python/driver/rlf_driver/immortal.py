"""Makes all that exists before a snapshot immortal, and then fills the holes of the heap.

An instance ends with its run, so nothing of the snapshot has to be freed. A reference to an immortal object is neither counted nor
written, so that whoever reads the object leaves its page as it is. Otherwise a session copies a page for nearly every object that
it looks at.

A run should not allocate in the free room that start-up leaves all over the heap either. So that room is taken. What is allocated
at the top of the heap lies together, on pages that are new anyway.
"""

import gc
import sys
import types

_CHUNK = 1000
"""Number of objects whose references are followed at once. All at once would take megabytes, and the snapshot would keep them."""
_MAX_SIZE = 1 << 18
_SMALL = 4096


def keep_all(keep):
    """Keeps all that exists for good, and leaves no room between it. `keep` makes a list of objects immortal, and returns those
    that were not yet. What an earlier call kept is passed over."""
    is_first = not gc.get_freeze_count()
    gc.collect()
    tracked = gc.get_objects()
    follow([*tracked, sys.modules], keep)
    # The collector knows nothing of static types, which all exist at the first call.
    for cls in classes(object) if is_first else [one for one in tracked if issubclass(type(one), type)]:
        # A type that nobody has asked for an attribute has no version yet. The first to ask would write it.
        cls.__init__
        follow([cls, cls.__mro__, cls.__bases__, *cls.__dict__, *cls.__dict__.values()], keep)
    del tracked, cls
    # The cache of attributes alone holds some names. Each would be freed, and leave a hole, when another takes its place.
    sys._clear_type_cache()
    gc.collect()
    fill_holes(keep)
    gc.freeze()


def classes(base):
    """`base` and all that derives from it."""
    found, pending = {}, [base]
    while pending:
        cls = pending.pop()
        if cls not in found:
            found[cls] = None
            pending += type.__subclasses__(cls)
    return list(found)


def follow(objects, keep):
    """Makes objects immortal, and all that they lead to over mortal ones."""
    keep(objects)
    pending = list(objects)
    while pending:
        chunk = pending[-_CHUNK:]
        del pending[-_CHUNK:]
        pending += keep(referents(chunk))


def referents(objects):
    """All that the objects refer to directly."""
    found = gc.get_referents(*objects)
    # The collector does not look into code.
    for code in objects:
        if type(code) is types.CodeType:
            found += (code.co_consts, code.co_names, code.co_exceptiontable, code.co_linetable)
            found += (code.co_filename, code.co_name, code.co_qualname)
    return found


def fill_holes(keep):
    """Makes immortal objects of every size that fill what is free below the heap's top."""
    # A fresh megabyte is at the top of the memory.
    probe = bytes(1 << 20)
    top = id(probe)
    del probe
    size = _MAX_SIZE
    while size > 1:
        filler = bytes(size)
        if id(filler) < top:
            keep([filler])
        else:
            size = size - size // 8 if size > _SMALL else size - 8
    # An object that is smaller than any bytes.
    while id(filler := object()) < top:
        keep([filler])
