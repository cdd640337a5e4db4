"""`sys.maxsize` as on machines with 64 bits. Programs take it for infinity: as a number, and as a count without end."""

from .sound import __builtins__  # isort: skip

import sys


def install():
    """Raises `sys.maxsize` if the build takes the larger number for a length, too (native/patches/sizes.patch)."""
    largest = (1 << 63) - 1
    try:
        "".split(maxsplit=largest)
    except OverflowError:
        return
    sys.maxsize = largest
