"""Docstrings: the description of a function, and the descriptions of its parameters."""

import inspect
import re

_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?)\s*:?\s*$")
_PARAMETERS = ("Args", "Arguments", "Parameters")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)")


def parsed(function):
    """`(description, {parameter: description})` of a docstring in the style of Google, numpy or Sphinx.

    The description is the text before the first section.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    described, parameters, section, last, depth, of_numpy = [], {}, None, None, 0, False
    for line in text.splitlines():
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if field := _FIELD.fullmatch(stripped):
            section, last, depth = "Sphinx", field[1], indent
            parameters[last] = field[2]
        elif stripped.startswith((":return", ":raise", ":rtype", ":type")):
            section, last = "Sphinx", None
        elif indent == 0 and (heading := _SECTION.fullmatch(stripped)):
            section, last, of_numpy = heading[1], None, False
        elif section is not None and stripped and not stripped.strip("-"):
            of_numpy = True
        elif section is None:
            described.append(line)
        elif section in _PARAMETERS and stripped and indent == 0 and depth > 0:
            # A section with another name begins.
            section, last, depth = "Other", None, 0
        elif section in _PARAMETERS and stripped and (last is None or indent <= depth):
            if entry := _ENTRY.fullmatch(stripped):
                last, depth = entry[1], indent
                # In numpy's style the type stands there, and the description follows.
                parameters[last] = "" if of_numpy else entry[2]
        elif last is not None and stripped and indent > depth:
            parameters[last] = f"{parameters[last]} {stripped}".strip()
    return "\n".join(described).strip(), parameters
