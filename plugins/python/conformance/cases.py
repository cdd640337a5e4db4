"""Reads and writes the cases; README.md says what they hold."""

import pathlib
import tomllib

PROGRAMS = pathlib.Path(__file__).parent / "programs"
SESSIONS = pathlib.Path(__file__).parent / "sessions"
RECORDED = "[expected]\n"


def programs():
    """Every program's file, sorted by name."""
    return sorted(PROGRAMS.glob("*.py"))


def read(path):
    """The case of a program: what is given and expected."""
    return tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))


def bytes_of(table):
    """Files and modules as bytes by name."""
    return {name: text.encode() for name, text in table.items()}


def string(text):
    """`text` as TOML, as readable as it can be."""
    plain = all(letter == "\n" or letter.isprintable() for letter in text)
    if plain and "\n" in text and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(
        escapes.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08x}") for letter in text
    ) + '"'


def replace_recorded(path, expected):
    """Writes `expected` after what a person wrote into the case's file."""
    file = path.with_suffix(".toml")
    by_hand = file.read_text(encoding="utf-8").split(RECORDED)[0].rstrip("\n")
    lines = [by_hand, ""] if by_hand else []
    lines.append(RECORDED.rstrip("\n"))
    files = expected.pop("files", {})
    for key, value in expected.items():
        lines.append(f"{key} = {string(value) if isinstance(value, str) else value}")
    if files:
        lines += ["", "[expected.files]"] + [f"{string(name)} = {string(text)}" for name, text in files.items()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def expected_in_sandbox(case):
    """A case's expectations of the sandbox: the recorded ones, except where the case says that they differ."""
    expected, differs = dict(case.get("expected", {})), dict(case.get("sandbox", {}))
    differs.pop("because", None)
    for key in differs:
        for ending in ("-contains", "-begins", "-ends"):
            expected.pop(key.removesuffix(ending), None)
    return expected | differs


def differences(expected, found):
    """A line for each way in which `found` is not what is `expected`; of both the keys are those of README.md."""
    lines = []
    for key, want in expected.items():
        name, _, how = key.rpartition("-") if key.endswith(("-contains", "-begins", "-ends")) else (key, "", "")
        have = found.get(name)
        if how == "contains":
            lines += [f"{name} lacks {part!r}: {have!r}" for part in want if part not in have]
        elif how == "begins" and not have.startswith(want) or how == "ends" and not have.endswith(want):
            lines.append(f"{key} {want!r}: {have!r}")
        elif not how and have != want:
            lines.append(f"{name} is {have!r}, expected {want!r}")
    return lines
