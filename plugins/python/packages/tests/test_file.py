"""Plugins written as one file: the requests of the rlf_file."""

import dataclasses
import enum
import json
import math
import pathlib
import sys
import unittest

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGES), str(PACKAGES.parents[2] / "sdk/python")]

import rlf  # noqa: E402
import rlf_file  # noqa: E402
from rlf import testing  # noqa: E402
from rlf_file import foreign  # noqa: E402

SENT_TASK = {
    "id": "t1",
    "source": "set",
    "prompt": [{"role": "user", "content": [{"text": "How many?"}]}],
    "reference": '{"answer": 3}',
    "extra": [["level", "2"]],
}
SENT_TRAJECTORY = {
    "id": "a",
    "tools": ["add"],
    "events": [
        {
            "turn": {
                "text": "..",
                "reasoning": "hm",
                "visible": "",
                "calls": [{"call_id": "c", "name": "add", "arguments": '{"a": 1}'}],
                "malformed": [{"text": "{", "diagnostic": "bad-json"}],
                "tokens": 7,
            }
        },
        {
            "outcome": {
                "call_id": "c",
                "ended": "ok",
                "content": [{"text": "sum: "}, {"structured": "[3]"}, {"media_type": "image/png"}],
                "step_reward": 0.5,
            }
        },
        {"user": {"role": "user", "content": [{"text": "and?"}]}},
    ],
    "answer": "3",
    "finish": "answered",
    "final_state": '{"n": 3}',
    "verdict": {"success": True, "score": 1.0, "reason": ""},
    "extra": [],
}

SERVER_WITH_SCENARIOS = """
from mcp.server.fastmcp import FastMCP
mcp = FastMCP(name='Lamps')
@mcp.tool()
def load_scenario(scenario: dict) -> str: ...
@mcp.tool()
def save_scenario() -> dict: ...
"""


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Unit(enum.Enum):
    METRE = "m"


class Calls(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def test_results_are_what_the_model_reads(self):
        @rlf.tool
        def give(what: str):
            return {
                "text": "two words",
                "number": 2.5,
                "truth": True,
                "nothing": None,
                "list": [1, Point(1.0)],
                "enum": Unit.METRE,
                "image": rlf.Image(b"\x89PNG", "image/png"),
                "parts": rlf.Observation(["a", {"b": 1}], failed=True, metrics={"cost": 2}),
            }[what]

        def answered(what):
            return json.loads(rlf_file.call("give", json.dumps({"what": what}), testing.context()))

        self.assertEqual(answered("text")["content"], [{"text": "two words"}])
        self.assertEqual(answered("number")["content"], [{"text": "2.5"}])
        self.assertEqual(answered("truth")["content"], [{"text": "true"}])
        self.assertEqual(answered("nothing")["content"], [])
        self.assertEqual(answered("list")["content"], [{"structured": '[1,{"x":1.0,"y":0.0}]'}])
        self.assertEqual(answered("enum")["content"], [{"text": "m"}])
        self.assertEqual(answered("image")["content"], [{"image": {"media_type": "image/png", "data": "iVBORw=="}}])
        parts = answered("parts")
        self.assertEqual((parts["failed"], parts["metrics"]), (True, [["cost", 2.0]]))

    def test_a_bug_is_for_the_author_and_not_for_the_model(self):
        @rlf.tool
        def city(name: str) -> str:
            return {"paris": "France"}[name]

        answer = rlf_file.call("city", '{"name": "rome"}', testing.context())
        self.assertIsInstance(answer, rlf_file.Failure)
        self.assertEqual(json.loads(answer), {"error": {"kind": "internal", "message": "KeyError: 'rome'"}})


class Grades(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def test_the_hosts_form_is_read_whole(self):
        seen = {}

        @rlf.reward
        def look(task, trajectory, grading):
            seen.update(locals())
            return {"one": 1}

        answer = rlf_file.grade(SENT_TASK, [SENT_TRAJECTORY], {"split": "train", "step": 1, "steps": 9, "seed": 3})
        self.assertEqual(json.loads(answer), [{"terms": [["one", 1.0]], "per_event": [], "metrics": []}])
        task, trajectory = seen["task"], seen["trajectory"]
        self.assertEqual((task.prompt[0].text, task.reference, task.extra), ("How many?", {"answer": 3}, {"level": 2}))
        (turn,), (outcome,) = trajectory.turns(), trajectory.outcomes()
        self.assertEqual((turn.calls[0].arguments, turn.malformed[0].diagnostic, turn.tokens), ({"a": 1}, "bad-json", 7))
        self.assertEqual((outcome.text, outcome.structured, outcome.step_reward), ("sum: [3][image/png]", [[3]], 0.5))
        self.assertEqual(trajectory.events[2], rlf.Message("user", "and?"))
        self.assertEqual((trajectory.final_state, trajectory.verdict), ({"n": 3}, rlf.Verdict(True, 1.0, "")))
        self.assertEqual(seen["grading"], rlf.Grading("train", 1, 9, 3))

    def test_what_a_reward_raises_excludes_that_trajectory_alone(self):
        @rlf.reward
        def strict(trajectory):
            return {"a": 1.0, "b": math.nan, "c": "x"}[trajectory.answer]

        sent = [{**SENT_TRAJECTORY, "answer": answer} for answer in "abcd"]
        scores = json.loads(rlf_file.grade(SENT_TASK, sent, {}))
        self.assertEqual(scores[0]["terms"], [["strict", 1.0]])
        self.assertIn("not a finite number", scores[1]["error"])
        self.assertIn("returned str", scores[2]["error"])
        self.assertEqual(scores[3]["error"], "KeyError: 'd'")


class Host:
    """Data slots, as the host reads them."""

    def __init__(self, slots):
        self.slots = slots

    def entries(self, slot):
        return [(path, len(data)) for path, data in self.slots[slot].items()]

    def read(self, slot, path, offset, length):
        return self.slots[slot][path][offset : offset + length]

    def ask(self, kind, requests):
        return json.dumps({"error": {"kind": "denied", "message": f"{kind} {requests}"}})


class Files(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def loaded(self, source, **given):
        return rlf_file.load(json.dumps({"file": "search.py", "source": source, **given}))

    def test_init_sees_configuration_and_data(self):
        source = (
            "import rlf\n"
            "@rlf.init\n"
            "def load(config):\n"
            "    global lines\n"
            "    lines = rlf.data('corpus')['a.txt'].decode().splitlines()[: config['limit']]\n"
            "@rlf.tool\n"
            "def count() -> int:\n"
            "    return len(lines)\n"
        )
        rlf_file.connect(Host({"corpus": {"a.txt": b"a\nb\nc"}}))
        for source in (source, source.replace("@rlf.init\ndef", "@rlf.init()\nasync def")):
            testing.forget()
            self.assertEqual(self.loaded(source, config={"limit": 2}), "{}")
            self.assertEqual(testing.call("count").text, "2")

    def test_a_request_that_a_gate_refuses_is_the_end_of_the_call(self):
        rlf_file.connect(Host({}))
        self.addCleanup(rlf.gates._askers.clear)
        self.loaded("import rlf\n@rlf.tool\ndef get() -> str:\n    return rlf.fetch('https://a').text\n")
        answer = rlf_file.call("get", "{}", testing.context())
        self.assertIsInstance(answer, rlf_file.Failure)
        error = json.loads(answer)["error"]
        self.assertEqual(error["kind"], "internal")
        self.assertIn("http.fetch", error["message"])

    def test_the_files_beside_it_can_be_imported_in_a_call_too(self):
        source = "import rlf, one\n@rlf.tool\ndef sum() -> int:\n    import two\n    return one.N + two.N\n"
        self.addCleanup(lambda: [sys.modules.pop(name, None) for name in ("one", "two")])
        self.addCleanup(lambda: sys.meta_path.pop())
        self.assertEqual(self.loaded(source, beside={"one.py": "N = 1", "two.py": "import one\nN = one.N + 1"}), "{}")
        self.assertEqual(testing.call("sum").text, "3")

    def test_tools_of_other_frameworks_are_loaded_unchanged(self):
        self.addCleanup(lambda: [sys.modules.pop(name, None) for name in foreign._MODULES])
        body = "(n: int) -> float:\n    '''Halves.'''\n    return 1 / (n and 2 / n)\n"
        error = "error: ZeroDivisionError: division by zero"
        for source, failure in [
            (
                f"from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('s')\n@mcp.tool()\ndef half{body}",
                "Error executing tool half: division by zero",
            ),
            (f"from langchain_core.tools import tool\n@tool\ndef half{body}", error),
            (f"from langchain.tools import tool\n@tool('half', description='Halves.')\ndef f{body}", error),
            (f"from verl.tools.function_tool import function_tool\n@function_tool('half')\ndef f{body}", error),
        ]:
            testing.forget()
            self.assertEqual(self.loaded(source), "{}", source)
            (tool,) = json.loads(rlf_file.describe())["tools"]
            self.assertEqual((tool["name"], tool["description"]), ("half", "Halves."))
            self.assertEqual(tool["input_schema"]["properties"]["n"]["type"], "integer")
            self.assertEqual(testing.call("half", {"n": 3}), testing.Result("1.5", False, {}))
            self.assertEqual(testing.call("half", {"n": 0}), testing.Result(failure, True, {}))

    def test_a_file_that_fails_names_its_line(self):
        for source, expected in [
            ("import rlf\n\n1 / 0\n", "search.py:3: ZeroDivisionError: division by zero"),
            ("def (", "search.py:1: SyntaxError: invalid syntax"),
            ("x = 1\n", "search.py: no function has @rlf.tool or @rlf.reward"),
            ("import rlf\n@rlf.init\ndef f():\n    rlf.data('x')\n", "search.py:4: LookupError: "),
            ("import rlf\n@rlf.tool\ndef f(*a):\n    pass\n", "search.py:2: f: `*` and `**` parameters"),
            (SERVER_WITH_SCENARIOS, "tools with `load_scenario` and `save_scenario` are an environment: docs/environments.md"),
            ("import beside_it\n", "beside_it.py:2: ValueError: no"),
            ("raise MemoryError\n", "search.py:1: MemoryError: it needs more memory than its limit `memory_bytes`"),
            ("raise ValueError('x' * 10**6)\n", "x" * 1900),
            ("from json import nothing\n", "search.py:1: ImportError: cannot import name 'nothing' from 'json'"),
            ("import rlf\n@rlf.init\ndef f(a, b): ...\n", "takes the configuration, or nothing"),
        ]:
            testing.forget()
            answer = self.loaded(source, beside={"beside_it.py": "\nraise ValueError('no')"})
            self.addCleanup(sys.meta_path.pop)
            self.assertIsInstance(answer, rlf_file.Failure)
            message = json.loads(answer)["error"]["message"]
            self.assertIn(expected, message)
            self.assertNotIn("the sandbox has", message)
            self.assertLess(len(message), 2100)
        self.assertIn("but not 'numpy_'", self.loaded("import numpy_"))

    def test_a_model_finds_the_definitions_of_the_models_in_it(self):
        source = (
            "import enum, rlf, pydantic\n"
            "class Unit(enum.Enum):\n    KM = 'km'\n"
            "class Place(pydantic.BaseModel):\n    name: str\n    unit: Unit = Unit.KM\n"
            "class Way(pydantic.BaseModel):\n    places: list[Place]\n"
            "@rlf.tool\n"
            "def far(way: Way, to: Place | None = None) -> str:\n"
            "    return way.places[0].name + way.places[0].unit.value + (to.name if to else '')\n"
        )
        self.assertEqual(self.loaded(source), "{}")
        (tool,) = json.loads(rlf_file.describe())["tools"]
        self.assertEqual(set(tool["input_schema"]["$defs"]), {"Place", "Unit"})
        self.assertNotIn("$defs", tool["input_schema"]["properties"]["way"])
        arguments = {"way": {"places": [{"name": "Rome"}]}, "to": {"name": "Bari"}}
        self.assertEqual(testing.call("far", arguments).text, "RomekmBari")
        other = "pydantic.create_model('Other', place=(pydantic.create_model('Place', b=(int, ...)), ...))"
        two = source.replace("Place | None = None", other)
        testing.forget()
        self.assertIn("two types named Place", self.loaded(two))
        testing.forget()
        default = "import rlf, pydantic\n@rlf.tool\ndef f(x: int = pydantic.Field(default=1)): ...\n"
        self.assertIn("write `x: Annotated[.., Field(..)] = ..`", self.loaded(default))

    def test_langchains_options_mean_what_they_mean_there(self):
        self.addCleanup(lambda: [sys.modules.pop(name, None) for name in foreign._MODULES])
        tool = "import pydantic\nfrom langchain_core.tools import tool\n"
        model = "class Sum(pydantic.BaseModel):\n    a: int\n    b: int = 5\n"
        self.assertEqual(self.loaded(f"{tool}{model}@tool(args_schema=Sum)\ndef add(a, b):\n    return a + b\n"), "{}")
        self.assertEqual(testing.call("add", {"a": 1}).text, "6")
        testing.forget()
        given = "{'type': 'object', 'properties': {'a': {'type': 'integer'}}}"
        self.assertEqual(self.loaded(f"{tool}@tool(args_schema={given})\ndef same(a):\n    return a\n"), "{}")
        self.assertEqual(testing.schema("same")["properties"], {"a": {"type": "integer"}})
        testing.forget()
        shown = "@tool(response_format='content_and_artifact')\ndef pair(a: int):\n    return f'{a}', [a]\n"
        self.assertEqual(self.loaded(tool + shown), "{}")
        self.assertEqual(testing.call("pair", {"a": 2}).text, "2")
        testing.forget()
        sloppy = "@tool\ndef sloppy(a: int) -> dict:\n    return 'text'\n"
        self.assertEqual(self.loaded(tool + sloppy), "{}")
        self.assertEqual(testing.call("sloppy", {"a": 2}), testing.Result("text", False, {}))
        testing.forget()
        alias = (
            "import pydantic, rlf\n"
            "class Way(pydantic.BaseModel):\n    length: float = pydantic.Field(alias='km')\n"
            "@rlf.tool\ndef far() -> Way:\n    return Way(km=1.5)\n"
        )
        self.assertEqual(self.loaded(alias), "{}")
        self.assertEqual(testing.call("far").text, '{"km":1.5}')

    def test_the_warm_up_leaves_nothing(self):
        before = set(sys.modules)

        def ask(what, arguments):
            answer = getattr(rlf_file, what)(*arguments)
            self.assertNotIsInstance(answer, rlf_file.Failure, answer)

        rlf_file.warmup.play(ask)
        self.assertEqual(set(sys.modules) - before, set())
        self.assertEqual(json.loads(rlf_file.describe()), {"tools": [], "rewards": []})


if __name__ == "__main__":
    unittest.main()
