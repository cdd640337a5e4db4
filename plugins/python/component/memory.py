"""The interpreter's own memory. Python code cannot reach it otherwise: this build has neither `ctypes` nor C code of ours.

The layouts are those of CPython 3.14 with pointers of 32 bits, which the version in `requirements.txt` fixes. `words` fails if they
are others, and with it the build of the component.
"""

import opcode
import struct

from rlf_driver import immortal

_WORD_BYTES = 4
_IMMORTAL = 5 << 28
"""The reference count of an immortal object: `_Py_IMMORTAL_INITIAL_REFCNT` for pointers of 32 bits."""
_LEAST_IMMORTAL = 1 << 30
"""The least reference count that is not counted any more: `_Py_IMMORTAL_MINIMUM_REFCNT`."""

_BYTES = 0x7FFF_FFFC
_FIRST_ITEM = tuple.__basicsize__
_FIRST_BYTE = bytes.__basicsize__ - 1
_PADDING_BYTES = 1 << 20
"""More than any hole of the heap has, so that the bytes lie above the constants of a function."""


def words():
    """The memory as unsigned words, as a `memoryview`.

    A function reads a constant from behind the end of its constants. There lies the address of bytes that are laid out as a
    `bytearray` whose content begins at address 0."""
    array = struct.pack("<7i", _IMMORTAL, id(bytearray), _BYTES, _BYTES, 0, 0, 0)
    pointer = struct.pack("<i", id(array) + _FIRST_BYTE) + bytes(_PADDING_BYTES)
    code = constant.__code__
    number = (id(pointer) + _FIRST_BYTE - id(code.co_consts) - _FIRST_ITEM) // _WORD_BYTES
    if number < 0:
        raise MemoryError("the constants of a function lie above new memory")
    whole = memoryview(type(constant)(loading(code, number), {})()).cast("I")
    if is_mortal(whole, None) or whole[id(array) // _WORD_BYTES + 1] != id(bytes):
        raise SystemError("objects are not laid out as those of CPython 3.14 with pointers of 32 bits")
    # The view refers to these bytes, unknown to them.
    make_immortal(whole, array)
    return whole


def constant():
    """Returns a constant."""
    return None


def loading(code, number):
    """`code`, which returns a constant, changed to return the constant of this number."""
    extended, load = opcode.opmap["EXTENDED_ARG"], opcode.opmap["LOAD_CONST"]
    resume, end = code.co_code[:2], code.co_code[-2:]
    prefixes = [byte for shift in (24, 16, 8) for byte in (extended, number >> shift & 255)]
    return code.replace(co_code=resume + bytes([*prefixes, load, number & 255]) + end)


def is_mortal(whole, one):
    """Whether references to an object are counted."""
    return whole[id(one) // _WORD_BYTES] < _LEAST_IMMORTAL


def make_immortal(whole, one):
    """Keeps an object for good. References to it are neither counted nor written."""
    whole[id(one) // _WORD_BYTES] = _IMMORTAL


def keep_all():
    """Keeps all that exists now."""
    whole = words()

    def keep(objects):
        mortal = [one for one in objects if is_mortal(whole, one)]
        for one in mortal:
            make_immortal(whole, one)
        return mortal

    immortal.keep_all(keep)
    whole.release()
