"""Rich output of a notebook: MIME bundles, by the methods that IPython asks objects for."""

from .sound import __builtins__  # isort: skip

import base64
import binascii
import json

from .report import describe, plain, show

METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
"""The methods, with what they return."""

_shown = []


def collect():
    """The list that everything shown from now on is added to."""
    global _shown
    _shown = []
    return _shown


def display(*objects, **_):
    """Shows `objects`: as text and, where they know how, as HTML, pictures and the like."""
    for thing in objects:
        _shown.append(("text/plain", plain(repr(thing)).encode()))
        rich(thing)


def rich(thing):
    """Shows `thing` in all that it can be beside text."""
    if isinstance(thing, type):
        # The methods are for instances of the class.
        return
    bundle = ask(thing, "_repr_mimebundle_")
    if isinstance(bundle, tuple):
        bundle = bundle[0]
    if isinstance(bundle, dict):
        for media_type, data in bundle.items():
            if media_type != "text/plain":
                add(media_type, data)
        return
    for method, media_type in METHODS.items():
        data = ask(thing, method)
        if isinstance(data, tuple):
            data = data[0]
        if data is not None:
            add(media_type, data)


def ask(thing, method):
    """The result of the object's method, None where it has none. An exception is shown and ends nothing else."""
    function = getattr(thing, method, None)
    if not callable(function):
        return None
    try:
        return function()
    except NotImplementedError:
        return None
    except Exception as error:
        # The calling frame is not part of the program.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        show(describe(error)[2])
        return None


def add(media_type, data):
    """Adds one form of a thing as bytes: pictures may come in base64, JSON as plain data."""
    if isinstance(data, str):
        text = media_type.startswith("text/") or media_type.endswith(("xml", "json", "javascript"))
        if text:
            data = plain(data).encode()
        else:
            try:
                data = base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                data = plain(data).encode()
    elif not isinstance(data, (bytes, bytearray, memoryview)):
        try:
            data = json.dumps(data).encode()
        except (TypeError, ValueError):
            data = plain(repr(data)).encode()
    _shown.append((str(media_type), bytes(data)))
