"""Records what the real pydantic makes of `models.py`, for `test_pydantic.py` to run without it.

    python3 -m venv venv && venv/bin/pip install pydantic
    venv/bin/python record.py

Of the inputs every seventh is recorded; the comparison beside the real package is of all.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
EVERY = 7
KEPT = ("validated", "dump", "dump_json")

# Our pydantic is beside this folder and must not be recorded.
sys.path[:] = [folder for folder in sys.path if pathlib.Path(folder or ".").resolve() != HERE.parent]


def main():
    import pydantic

    import observe

    if not hasattr(pydantic, "main") or "pydantic_core" not in sys.modules:
        sys.exit("this is not the real pydantic")
    found = observe.everything()
    inputs = [[place, {key: seen[key] for key in KEPT if key in seen}] for place, seen in found["inputs"][::EVERY]]
    recorded = {
        "pydantic": pydantic.VERSION,
        "python": sys.version.split()[0],
        "schemas": found["schemas"],
        "inputs": inputs,
    }
    (HERE / "expected.json").write_text(json.dumps(recorded, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
