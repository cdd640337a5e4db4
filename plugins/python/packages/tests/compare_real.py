"""Runs a folder of environments with the real mcp and with ours, and counts what is equal.

    python3 compare_real.py FOLDER [--scenarios FOLDER] [--python PYTHON] [--calls 40] [--show 5]

FOLDER has the files of tools; the other one, checkpoints `NAME_checkpoint.json` with `scenarios`, each with its
`scenario_data`. PYTHON is one that has `pydantic` and `mcp<2` installed; the same interpreter runs both sides. Each side
executes every file, describes its tools, loads every scenario, and variants of it with something broken, makes calls and
saves the state. Calls are made up from the schemas and from what is in the scenario, some of them wrong on purpose.
Time, randomness and UUIDs are the same on both sides.
"""

import argparse
import datetime
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import time
import types
import uuid
import warnings

OURS = pathlib.Path(__file__).resolve().parent.parent


class Still(datetime.datetime):
    """A clock that stands."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 3, 4, 5, 6, 7, tzinfo=tz)

    @classmethod
    def utcnow(cls):
        return cls.now()

    @classmethod
    def today(cls):
        return cls.now()


def settle():
    """The same environment for both sides."""
    warnings.simplefilter("ignore")
    for name in ("requests", "httpx"):
        sys.modules[name] = types.ModuleType(name)
    datetime.datetime = Still
    time.time = lambda: 1741064767.25
    time.sleep = lambda seconds: None
    uuid.uuid4 = lambda: uuid.UUID(int=random.getrandbits(128), version=4)


class Real:
    """A file under the real packages."""

    def __init__(self, mcp):
        self.manager = mcp._tool_manager

    def tools(self):
        return [(tool.name, tool.description, tool.parameters, tool.output_schema) for tool in self.manager.list_tools()]

    def call(self, name, arguments):
        work = self.manager.call_tool(name, arguments, convert_result=True)
        try:
            work.send(None)
        except StopIteration as done:
            found = done.value
            return ",".join(content.text for content in (found[0] if isinstance(found, tuple) else found))
        raise RuntimeError("a tool that waits")


class Ours:
    """The same under ours."""

    def __init__(self, mcp):
        self.mcp = mcp

    def tools(self):
        return [(tool.name, tool.description, tool.parameters, tool.output_schema) for tool in self.mcp.tools.values()]

    def call(self, name, arguments):
        return ",".join(self.mcp.call(name, arguments))


def pools(value, found, key=""):
    """What values a scenario has under which names."""
    if isinstance(value, dict):
        found.setdefault(key.rstrip("s") + "_id", []).extend(value)
        for name, inner in value.items():
            pools(inner, found, name)
    elif isinstance(value, list):
        found.setdefault(key, []).append(value)
        for inner in value:
            pools(inner, found, key)
    else:
        found.setdefault(key, []).append(value)
    return found


STRANGE = [None, True, False, 0, 1, -1, 2, 3.5, 4.0, 1e20, "", "3", " 4 ", "x", "true", "2024-01-15", "[1, 2]", '{"a": 1}', "null", [], ["a"], [1, "b"], {}, {"a": [1]}, "é", "a.b", float("inf")]  # fmt: skip


def value_for(name, schema, known, chance):
    if chance.random() < 0.12:
        return chance.choice(STRANGE)
    choices = [inner for inner in schema.get("anyOf", [schema])]
    schema = chance.choice(choices)
    kind = schema.get("type")
    fitting = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    own = [value for value in known.get(name, []) if kind is None or isinstance(value, fitting.get(kind, object))]
    if own and chance.random() < 0.8:
        return chance.choice(own)
    if kind == "string":
        texts = [value for values in known.values() for value in values if isinstance(value, str)]
        return chance.choice(texts or ["word"])
    if kind == "integer":
        return chance.choice([1, 2, 5, 10, 0])
    if kind == "number":
        return chance.choice([1, 2.5, 99.99, 0])
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "array":
        return [value_for(name, schema.get("items", {}), known, chance) for _ in range(chance.randint(0, 2))]
    if kind == "object":
        objects = [value for values in known.values() for value in values if isinstance(value, dict)]
        return chance.choice(objects or [{"a": 1}])
    return chance.choice(STRANGE) if kind != "null" else None


def arguments_for(schema, known, chance):
    found = {}
    for name, inner in schema.get("properties", {}).items():
        needed = name in schema.get("required", [])
        if chance.random() < (0.97 if needed else 0.5):
            found[name] = value_for(name, inner, known, chance)
    if chance.random() < 0.03:
        found["surplus"] = 1
    return found


def broken(scenario, chance):
    """The scenario with one thing in it wrong."""
    scenario = json.loads(json.dumps(scenario))
    spots = []

    def walk(value):
        for key in list(value if isinstance(value, dict) else range(len(value))):
            spots.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(scenario)
    if spots:
        value, key = chance.choice(spots)
        if chance.random() < 0.4:
            del value[key]
        else:
            value[key] = chance.choice(STRANGE)
    return scenario


def outcome(function, *arguments):
    try:
        text, failed = function(*arguments), False
    except BaseException as error:
        text, failed = str(error), True
    return [re.sub(r"0x[0-9a-f]{6,}", "0x..", text), failed]


def executed(path, side):
    spec = importlib.util.spec_from_file_location(f"file_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return side(next(value for value in vars(module).values() if type(value).__name__ == "FastMCP"))


def examine(path, side, scenarios, calls):
    """All that a side shows of a file."""
    try:
        server = executed(path, side)
    except BaseException as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    shown = {"tools": server.tools(), "runs": []}
    schemas = {name: parameters for name, _, parameters, _ in shown["tools"]}
    names = [name for name in schemas if name not in ("load_scenario", "save_scenario")]
    chance = random.Random(path.stem)
    tried = [{}, *scenarios]
    tried += [broken(scenario, chance) for scenario in scenarios for _ in range(4)]
    for scenario in tried:
        random.seed(1)
        run = [("load_scenario", outcome(server.call, "load_scenario", {"scenario": scenario}))]
        known = pools(scenario, {})
        for _ in range(calls):
            name = chance.choice(names)
            given = arguments_for(schemas[name], known, chance)
            run.append((f"{name} {json.dumps(given)[:300]}", outcome(server.call, name, given)))
        run.append(("save_scenario", outcome(server.call, "save_scenario", {})))
        shown["runs"].append(run)
    return shown


def worker(which, folder, checkpoints, calls):
    if which == "ours":
        sys.path.insert(0, str(OURS))
    from mcp.server.fastmcp import FastMCP

    assert (str(OURS) in sys.modules[FastMCP.__module__].__file__) == (which == "ours"), FastMCP
    settle()
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.py")):
        scenarios = []
        checkpoint = pathlib.Path(checkpoints or folder) / f"{path.stem}_checkpoint.json"
        if checkpoint.exists():
            given = json.loads(checkpoint.read_text(encoding="utf-8")).get("scenarios") or []
            scenarios = [one["scenario_data"] for one in given if isinstance(one.get("scenario_data"), dict)]
        found[path.stem] = examine(path, Real if which == "real" else Ours, scenarios, calls)
    json.dump(found, sys.stdout)


def compared(real, ours, show):
    """Counts what is equal, and prints the first differences."""
    count = dict.fromkeys(("files", "loaded", "tools", "input schemas", "output schemas", "scenarios", "calls", "failed calls"), 0)
    equal = dict(count)
    differences = []

    def note(kind, place, one, other):
        count[kind] += 1
        if one == other:
            equal[kind] += 1
        else:
            differences.append((kind, place, one, other))

    for name, one in real.items():
        other = ours[name]
        note("files", name, one, other)
        note("loaded", name, one.get("failed"), other.get("failed"))
        if "failed" in one or "failed" in other:
            continue
        for first, second in zip(one["tools"], other["tools"]):
            note("tools", f"{name}.{first[0]}", first[:2], second[:2])
            # Compared as texts, because the order of keys counts.
            note("input schemas", f"{name}.{first[0]}", json.dumps(first[2]), json.dumps(second[2]))
            note("output schemas", f"{name}.{first[0]}", json.dumps(first[3]), json.dumps(second[3]))
        for first, second in zip(one["runs"], other["runs"]):
            for (call, got), (_, mine) in zip(first, second):
                kind = "scenarios" if call.endswith("_scenario") else "failed calls" if got[1] else "calls"
                note(kind, f"{name}: {call}", got, mine)
    for kind in count:
        print(f"{kind:15} {equal[kind]:7} of {count[kind]:7} equal")
    for kind, place, one, other in [d for d in differences if d[0] != "files"][:show]:
        print(f"\n{kind} {place}\n  real {str(one)[:1500]}\n  ours {str(other)[:1500]}")
    return not differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--scenarios")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--worker", choices=("real", "ours"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return worker(given.worker, given.folder, given.scenarios, given.calls)
    found = {}
    for which in ("real", "ours"):
        command = [given.python, __file__, given.folder, "--calls", str(given.calls), "--worker", which]
        command += ["--scenarios", given.scenarios] if given.scenarios else []
        done = subprocess.run(command, stdout=subprocess.PIPE, env={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"})
        if done.returncode:
            sys.exit(f"the {which} side failed")
        found[which] = json.loads(done.stdout[done.stdout.index(b'{"') :])
    sys.exit(not compared(found["real"], found["ours"], given.show))


if __name__ == "__main__":
    main()
