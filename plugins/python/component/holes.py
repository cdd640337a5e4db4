"""Takes the holes of the heap, so that a run allocates from its top.

An instance's memory is the snapshot's, copied page by page as it is written to. Start-up leaves free room all over the
heap; a run that allocated there would copy a page for nearly every object. What is allocated at the top lies together, on
pages that are new anyway.
"""

from memory import make_immortal

_MAX_SIZE = 1 << 18
_SMALL = 4096


def fill(whole):
    """Makes immortal objects of every size that fill what is free below the heap's top. `whole` is the memory."""
    # A fresh megabyte is at the top of the memory.
    probe = bytes(1 << 20)
    top = id(probe)
    del probe
    size = _MAX_SIZE
    while size > 1:
        filler = bytes(size)
        if id(filler) < top:
            make_immortal(whole, filler)
        else:
            size = size - size // 8 if size > _SMALL else size - 8
    # An object that is smaller than any bytes.
    while id(filler := object()) < top:
        make_immortal(whole, filler)
