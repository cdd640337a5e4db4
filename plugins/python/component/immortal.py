"""Makes all that exists before a snapshot immortal, and then fills the holes of the heap.

An instance ends with its run, so nothing of the snapshot has to be freed. A reference to an immortal object is neither counted nor
written, so that whoever reads the object leaves its page as it is. Otherwise a session copies a page for nearly every object that
it looks at.
"""

import gc
import sys
import types

import holes
from memory import is_mortal, make_immortal, words

_CHUNK = 1000
"""Number of objects whose references are followed at once. All at once would take megabytes, and the snapshot would keep them."""


def keep_all():
    """Keeps all that exists for good, and leaves no room between it."""
    gc.collect()
    gc.unfreeze()
    tracked = gc.get_objects()
    whole = words()
    follow(tracked, whole)
    # The collector knows nothing of static types.
    for cls in classes(object):
        # A type that nobody has asked for an attribute has no version yet. The first to ask would write it.
        cls.__init__
        follow([cls, cls.__mro__, cls.__bases__, *cls.__dict__, *cls.__dict__.values()], whole)
    del tracked, cls
    # The cache of attributes alone holds some names. Each would be freed, and leave a hole, when another takes its place.
    sys._clear_type_cache()
    gc.collect()
    holes.fill(whole)
    whole.release()
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


def follow(objects, whole):
    """Makes objects immortal, and all that they lead to over mortal ones. `whole` is the memory."""
    pending = list(objects)
    for one in pending:
        if is_mortal(whole, one):
            make_immortal(whole, one)
    while pending:
        chunk = pending[-_CHUNK:]
        del pending[-_CHUNK:]
        for one in referents(chunk):
            if is_mortal(whole, one):
                make_immortal(whole, one)
                pending.append(one)


def referents(objects):
    """All that the objects refer to directly."""
    found = gc.get_referents(*objects)
    # The collector does not look into code.
    for code in objects:
        if type(code) is types.CodeType:
            found += (code.co_consts, code.co_names, code.co_exceptiontable, code.co_linetable)
            found += (code.co_filename, code.co_name, code.co_qualname)
    return found
