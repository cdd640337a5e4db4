"""Runs the programs with the python3 that runs this, and records what they do as what is expected.

    python3 record.py [NAME..]

CPython 3.13 or newer, or tracebacks look otherwise. Files that are there before and differ after are named, for a person
to look at what changed.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import cases

SEED = "import random\nrandom.seed({seed})\n"
TIMEOUT_S = 60


def run(path, case):
    """The program's behaviour under this python3, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as site:
        root = pathlib.Path(os.path.realpath(folder))
        arguments = case.get("arguments", ["main.py"])
        modules = {name.replace(".", "/") + ".py": text for name, text in case.get("modules", {}).items()}
        for name, data in cases.bytes_of(modules | case.get("files", {})).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        (root / arguments[0]).write_bytes(path.read_bytes())
        # As if the program began with it; python3 has no option for this.
        (pathlib.Path(site) / "sitecustomize.py").write_text(SEED.format(seed=case.get("seed", 0)))
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=root,
            input=case.get("stdin", "").encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": site,
            },
        )
        # In a sandbox the program is at the root.
        text = {name: getattr(ended, name).decode().replace(f"{root}/", "") for name in ("stdout", "stderr")}
        found = {name: (root / name).read_text(newline="") for name in case.get("fetch", ()) if (root / name).is_file()}
        return {"exit-code": ended.returncode & 0xFF, **text, **({"files": found} if found else {})}


def main(names):
    if sys.version_info < (3, 13):
        sys.exit(f"{sys.executable} is Python {sys.version.split()[0]}; expectations are recorded with 3.13 or newer")
    for path in cases.programs():
        if names and path.stem not in names:
            continue
        case = cases.read(path)
        if not case.get("native", True):
            continue
        expected = run(path, case)
        if case.get("expected", expected) != expected:
            print(f"{path.stem}: changed")
        cases.replace_recorded(path, expected)


if __name__ == "__main__":
    main(sys.argv[1:])
