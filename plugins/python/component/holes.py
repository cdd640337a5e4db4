"""Takes the holes of the heap, so that a run allocates from its top.

An instance's memory is the snapshot's, copied page by page as it is written to. Start-up leaves free room all over the
heap; a run that allocated there would copy a page for nearly every object. What is allocated at the top lies together, on
pages that are new anyway.
"""

_MAX_OBJECTS = 400_000
_MAX_SIZE = 1 << 18
_SMALL = 4096


def fill():
    """Objects of every size that fill what is free below the heap's top, to be kept for good."""
    kept = [None] * _MAX_OBJECTS
    count = 0
    # A fresh megabyte is at the top of the memory.
    probe = bytes(1 << 20)
    top = id(probe)
    del probe
    size = _MAX_SIZE
    while size >= 0 and count < _MAX_OBJECTS:
        filler = bytes(size)
        if id(filler) < top:
            kept[count] = filler
            count += 1
        else:
            size = size - size // 8 if size > _SMALL else size - 8
    return kept
