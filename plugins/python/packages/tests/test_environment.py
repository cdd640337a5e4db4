"""What the host is promised of `rlf_environment`. Each test is a process image of its own, as each session is."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PATH = os.pathsep.join([str(HERE.parent), str(HERE.parents[3] / "sdk/python")])

SHOP = '''
import random
from typing import Dict, List, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

opened = []
sold = 0


class Item(BaseModel):
    """Something for sale."""
    name: str = Field(..., min_length=1)
    price: float = Field(..., ge=0)


class ShopScenario(BaseModel):
    items: Dict[str, Item] = {}
    cash: float = 0.0


Scenario_Schema = [Item, ShopScenario]


class ShopAPI:
    def __init__(self):
        self.items, self.cash = {}, 0.0

    def load_scenario(self, scenario: dict):
        model = ShopScenario(**scenario)
        self.items, self.cash = model.items, model.cash

    def save_scenario(self) -> dict:
        return {"items": {k: v.model_dump() for k, v in self.items.items()}, "cash": self.cash}


shop = ShopAPI()
mcp = FastMCP(name="Shop")


@mcp.tool()
def load_scenario(scenario: dict) -> str:
    """Loads."""
    shop.load_scenario(scenario)
    return "ok"


@mcp.tool()
def save_scenario() -> dict:
    """Saves."""
    return shop.save_scenario()


@mcp.tool()
def sell(item: str, tags: Optional[List[str]] = None) -> dict:
    """Sells an item."""
    global sold
    if item not in shop.items:
        raise ValueError(f"{item} is not for sale")
    sold += 1
    opened.append(item)
    shop.cash += shop.items.pop(item).price
    return {"cash": shop.cash, "tags": tags, "sold": sold}


@mcp.tool()
def roll() -> int:
    """Rolls a die."""
    return random.randint(1, 10**9)


@mcp.tool()
def leave(how: str) -> str:
    """Ends."""
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "memory": MemoryError}[how]("now")


@mcp.tool()
def listed() -> list:
    """Lists."""
    return ["a", {"b": 1}, None]


@mcp.tool()
async def waits(n: int) -> str:
    """Waits."""
    return "x" * n


@mcp.tool()
def lies() -> str:
    """Says it returns a text."""
    return 3


if __name__ == "__main__":
    mcp.run()
'''

SCENARIO = {"items": {"pen": {"name": "Pen", "price": 2}, "cup": {"name": "Cup", "price": 5.5}}, "cash": 1}
TASK = {"servers": {"Shop": SCENARIO}}
DRIVER = """
import json, sys
import rlf_environment as environment
answers = []
for name, *arguments in json.load(sys.stdin):
    arguments = [answers[a["answer"]] if isinstance(a, dict) else a for a in arguments]
    answers.append(getattr(environment, name)(*arguments))
sys.stderr.write(json.dumps(answers))
"""


def image(*calls, load=None, hashes="0"):
    """The answers of one process image that has the shop's file loaded, as texts; and what was printed."""
    load = json.dumps(load or {"servers": {"Shop": {"source": SHOP, "file": "Shop.py"}}})
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps([["load", load], *calls]), capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": PATH, "PYTHONHASHSEED": hashes, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stderr)


def opened(*calls, task=None, seed=7, **how):
    """The answers after `open`."""
    return image(["open", json.dumps(task or TASK), seed], *calls, **how)[2:]


def call(tool, **arguments):
    return ["call", tool, json.dumps(arguments)]


class Servers(unittest.TestCase):
    def test_a_session_offers_the_tools_but_those_of_the_host(self):
        answer = json.loads(image(["open", json.dumps(TASK), 1])[1])
        names = [tool["name"] for tool in answer["tools"]]
        self.assertEqual(names, ["Shop-sell", "Shop-roll", "Shop-leave", "Shop-listed", "Shop-waits", "Shop-lies"])
        self.assertEqual(answer["messages"], [])
        self.assertEqual(answer["tools"][0]["description"], "Sells an item.")
        self.assertEqual(
            answer["tools"][0]["input_schema"],
            {
                "properties": {
                    "item": {"title": "Item", "type": "string"},
                    "tags": {
                        "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
                        "default": None,
                        "title": "Tags",
                    },
                },
                "required": ["item"],
                "title": "sellArguments",
                "type": "object",
            },
        )

    def test_a_task_may_allow_some_tools_only(self):
        task = json.dumps({**TASK, "tools": ["Shop-roll"]})
        _, answer, refused = image(["open", task, 1], call("Shop-sell", item="pen"))
        self.assertEqual([tool["name"] for tool in json.loads(answer)["tools"]], ["Shop-roll"])
        self.assertEqual(json.loads(refused)["error"]["kind"], "not-found")

    def test_a_result_is_what_fastmcp_shows(self):
        sold, listed, waited = opened(call("Shop-sell", item="pen", tags='["x"]'), call("Shop-listed"), call("Shop-waits", n=3))
        text = '{\n  "cash": 3.0,\n  "tags": [\n    "x"\n  ],\n  "sold": 1\n}'
        self.assertEqual(json.loads(sold), {"text": text, "failed": False})
        self.assertEqual(json.loads(listed), {"text": 'a,{\n  "b": 1\n}', "failed": False})
        self.assertEqual(json.loads(waited), {"text": "xxx", "failed": False})

    def test_what_a_tool_does_wrong_is_a_failed_observation(self):
        missing, exits, interrupted, lies, bad = map(
            json.loads,
            opened(
                call("Shop-sell", item="hat"), call("Shop-leave", how="exit"), call("Shop-leave", how="interrupt"),
                call("Shop-lies"), ["call", "Shop-roll", "[1"],
            ),
        )  # fmt: skip
        self.assertEqual(missing, {"text": "Error executing tool sell: hat is not for sale", "failed": True})
        self.assertEqual(exits, {"text": "Error executing tool leave: SystemExit: now", "failed": True})
        self.assertEqual(interrupted, {"text": "Error executing tool leave: KeyboardInterrupt: now", "failed": True})
        self.assertIn("1 validation error for liesOutput\nresult\n  Input should be a valid string", lies["text"])
        self.assertTrue(bad["failed"])

    def test_unknown_and_hidden_tools_are_errors(self):
        for answer in opened(call("Shop-nothing"), call("Shop-save_scenario"), call("sell")):
            self.assertEqual(json.loads(answer)["error"]["kind"], "not-found")

    def test_a_scenario_that_does_not_fit_is_told(self):
        bad = json.dumps({"servers": {"Shop": {"items": {"pen": {"name": "", "price": 1}}}}})
        answer = json.loads(image(["open", bad, 1])[1])
        self.assertEqual(answer["error"]["kind"], "invalid-arguments")
        self.assertIn("items.pen.name\n  String should have at least 1 character", answer["error"]["message"])
        unknown = json.loads(image(["open", json.dumps({"servers": {"Bank": None}}), 1])[1])
        self.assertEqual(unknown["error"]["kind"], "not-found")

    def test_a_file_that_fails_is_told_with_file_line_and_exception(self):
        for source, text in (
            ("x = 1\nimport requests_of_nobody\n", "Bad.py:2: ModuleNotFoundError: No module named 'requests_of_nobody'"),
            ("def f(:\n", "Bad.py:1: SyntaxError"),
            ("import sys\nsys.exit(3)\n", "Bad.py:2: SystemExit: 3"),
            ("x = 1\n", "Bad.py: makes no FastMCP, and has no class with `reset`"),
            ("class A:\n  def reset(self): ...\nclass B:\n  def reset(self): ...\n", "2 classes with `reset`: A, B; give one the name of the file"),
            ("class A:\n  def reset(self): ...\n", "Bad.py: A has no tool"),
            ("class A:\n  def __init__(self): 1 / 0\n  def reset(self): ...\n", "A cannot be made: ZeroDivisionError"),
            ("class A:\n  def __init__(self): exit(1)\n  def reset(self): ...\n", "A cannot be made: SystemExit"),
        ):
            answer = json.loads(image(load={"servers": {"Bad": {"source": source, "file": "Bad.py"}}})[0])
            self.assertIn(text, answer["error"]["message"])

    def test_the_state_is_canonical(self):
        (state,) = opened(["state"])
        self.assertEqual(
            state,
            '{"Shop":{"cash":1.0,"items":{"cup":{"name":"Cup","price":5.5},"pen":{"name":"Pen","price":2.0}}}}',
        )

    def test_a_state_that_no_text_can_be_is_refused(self):
        source = (
            "from mcp.server.fastmcp import FastMCP\n"
            "class Odd:\n"
            "    def load_scenario(self, scenario):\n"
            "        self.value = {'number': float('nan'), 'text': 'a\\ud800'}[scenario['holds']]\n"
            "    def save_scenario(self):\n"
            "        return {'value': self.value}\n"
            "api = Odd()\n"
            "mcp = FastMCP(name='Odd')\n"
            "@mcp.tool()\n"
            "def nothing() -> None:\n"
            "    pass\n"
        )
        load = {"servers": {"Odd": {"source": source, "file": "Odd.py"}}}
        for holds, why in (("number", "Out of range float"), ("text", "surrogates not allowed")):
            (state,) = opened(["state"], task={"servers": {"Odd": {"holds": holds}}}, load=load)
            error = json.loads(state)["error"]
            self.assertEqual(error["kind"], "internal")
            self.assertIn("the state has no canonical JSON: ", error["message"])
            self.assertIn(why, error["message"])

    def test_equal_sets_are_equal_states(self):
        source = (
            "from mcp.server.fastmcp import FastMCP\n"
            "class Tags:\n"
            "    def load_scenario(self, scenario):\n"
            "        self.tags = set()\n"
            "        for tag in scenario['tags']:\n"
            "            self.tags.add(tag)\n"
            "    def save_scenario(self):\n"
            "        return {'tags': self.tags, 'all': [frozenset(self.tags)]}\n"
            "api = Tags()\n"
            "mcp = FastMCP(name='Tags')\n"
            "@mcp.tool()\n"
            "def count() -> int:\n"
            "    return len(api.tags)\n"
        )
        load = {"servers": {"Tags": {"source": source, "file": "Tags.py"}}}
        for tags in ([0, 8, "b", "a"], [8, "a", 0, "b"]):
            (state,) = opened(["state"], task={"servers": {"Tags": {"tags": tags}}}, load=load, hashes=str(tags[0]))
            self.assertEqual(state, '{"Tags":{"all":[["a","b",0,8]],"tags":["a","b",0,8]}}')

    def test_the_same_seed_gives_the_same_bytes(self):
        calls = [call("Shop-roll"), call("Shop-sell", item="cup"), ["state"], ["snapshot"]]
        self.assertEqual(opened(*calls), opened(*calls))
        self.assertNotEqual(opened(*calls, seed=8)[0], opened(*calls)[0])

    def test_saying_something_ends_the_episode(self):
        self.assertEqual(opened(["say", "done"]), ['{"terminated":true}'])

    def test_a_user_whom_a_model_plays_ends_it_by_leaving(self):
        played = {**TASK, "user": "model", "instruction": "Buy a pen."}
        said = opened(["say", "Which?"], ["say", "###STOP###"], task=played)
        self.assertEqual(said, ['{"terminated":false}', '{"terminated":true}'])
        refused = image(["open", json.dumps({**TASK, "user": "modle"}), 1])[1]
        self.assertIn("'solo' or 'model'", refused)


class Snapshots(unittest.TestCase):
    def test_a_restored_session_goes_on_as_the_first_one_would_have(self):
        before = [call("Shop-roll"), call("Shop-sell", item="pen")]
        after = [call("Shop-roll"), call("Shop-sell", item="cup"), ["state"]]
        *_, snapshot = opened(*before, ["snapshot"])
        straight = opened(*before, *after)[2:]
        _, restored, *answers = image(["restore", snapshot], *after)
        self.assertEqual(answers, straight)
        self.assertIn('"sold\\": 2', answers[1])
        self.assertNotIn("error", json.loads(restored))

    def test_what_cannot_be_kept_whole_is_not_kept_at_all(self):
        source = SHOP.replace("self.items, self.cash = {}, 0.0", "self.items, self.cash, self.f = {}, 0.0, lambda: 1")
        load = {"servers": {"Shop": {"source": source, "file": "Shop.py"}}}
        _, _, snapshot, state = image(["open", json.dumps(TASK), 1], ["snapshot"], ["state"], load=load)
        self.assertEqual(json.loads(snapshot)["error"]["kind"], "internal")
        self.assertNotIn("error", json.loads(state))

    def test_all_that_a_module_keeps_is_part_of_a_snapshot(self):
        source = SHOP + """
id, flag, kinds = 0, True, []

def one():
    return 1

def two():
    return 2

strategy = one

@mcp.tool()
def change() -> str:
    global id, flag, strategy
    id, strategy = id + 1, two
    one.times = id
    kinds.append(int)
    globals().pop("flag", None)
    return "ok"

@mcp.tool()
def tell() -> str:
    return str([id, "flag" in globals(), strategy(), kinds, vars(one)])
"""
        load = {"servers": {"Shop": {"source": source, "file": "Shop.py"}}}
        task = ["open", json.dumps(TASK), 1]
        *_, told, snapshot = image(task, call("Shop-change"), call("Shop-change"), call("Shop-tell"), ["snapshot"], load=load)
        self.assertIn("[2, False, 2, [<class 'int'>, <class 'int'>], {'times': 2}]", told)
        _, restored, again, kept = image(["restore", snapshot], call("Shop-tell"), ["snapshot"], load=load)
        self.assertEqual((again, kept), (told, snapshot))

    def test_all_that_functions_and_classes_keep_is_part_of_a_snapshot(self):
        source = SHOP + """
from typing import ClassVar

class Leaf(BaseModel):
    made: ClassVar[int] = 0
    names: ClassVar[list] = []
    size: int = 1

class Outer:
    class Inner:
        count = 0

    def grow(self, *, seen=[]):
        seen.append(len(seen))
        return len(seen)

def maker():
    count = 0

    def tick():
        nonlocal count
        count += 1
        return count
    return tick

def wrapped(function):
    calls = []

    def wrapper():
        calls.append(1)
        return function(), len(calls)
    return wrapper

@wrapped
def kept(found=[]):
    found.append(1)
    return len(found)

tick, shops = maker(), [shop]

@mcp.tool()
def change() -> str:
    Leaf.made += 1
    Leaf.names.append("n")
    Outer.Inner.count += 1
    return str([Leaf.made, Leaf.names, Outer.Inner.count, Outer().grow(), tick(), kept(), shops[0] is shop])
"""
        load = {"servers": {"Shop": {"source": source, "file": "Shop.py"}}}
        task = ["open", json.dumps(TASK), 1]
        *_, once, snapshot, twice = image(task, call("Shop-change"), ["snapshot"], call("Shop-change"), load=load)
        self.assertEqual(json.loads(once)["text"], "[1, ['n'], 1, 1, 1, (1, 1), True]")
        self.assertEqual(json.loads(twice)["text"], "[2, ['n', 'n'], 2, 2, 2, (2, 2), True]")
        _, restored, again = image(["restore", snapshot], call("Shop-change"), load=load)
        self.assertEqual(again, twice)

    def test_what_a_class_counts_is_part_of_a_snapshot(self):
        source = SHOP.replace("self.items, self.cash = {}, 0.0", "self.items, self.cash = {}, 0.0\n        type(self).opened += 1")
        source = source.replace("    def __init__(self", "    opened = 0\n\n    def __init__(self", 1)
        self.assertIn("opened = 0", source)
        # Python keeps something of its own in an abstract class.
        source = source.replace("class ShopAPI:", "import abc\n\n\nclass ShopAPI(abc.ABC):")
        self.assertIn("abc.ABC", source)
        load = {"servers": {"Shop": {"source": source, "file": "Shop.py"}}}
        _, _, _, snapshot = image(["open", json.dumps(TASK), 1], call("Shop-sell", item="pen"), ["snapshot"], load=load)
        _, restored, again = image(["restore", snapshot], ["snapshot"], load=load)
        self.assertNotIn("error", json.loads(restored))
        self.assertEqual(again, snapshot)

    def test_nonsense_is_refused(self):
        for text in ("{", "{}", '{"task":{},"version":9,"servers":{}}'):
            self.assertEqual(json.loads(image(["restore", text])[1])["error"]["kind"], "invalid-arguments")


class Verification(unittest.TestCase):
    def test_the_score_is_the_share_of_servers_in_the_wanted_state(self):
        wanted = {"cash": 3, "items": {"cup": {"name": "Cup", "price": 5.5}}}
        right, wrong, state, again = opened(
            call("Shop-sell", item="pen"),
            ["verify", "", json.dumps({"state": {"Shop": wanted}})],
            ["verify", "", json.dumps({"state": {"Shop": {**wanted, "cash": 4}}})],
            ["state"], ["state"],
        )[1:]  # fmt: skip
        self.assertEqual(json.loads(right)["score"], 1.0)
        self.assertEqual(json.loads(wrong), {"success": False, "score": 0.0, "reason": "Shop: cash differs"})
        self.assertEqual(state, again)

    def test_the_loaded_scenarios_are_handed_out(self):
        given = [{"id": "one", "task": TASK, "seed": 1, "calls": [["Shop-roll", {}]], "expect": {}}]
        load = {"servers": {"Shop": {"source": SHOP, "file": "Shop.py"}}, "scenarios": given}
        self.assertEqual(json.loads(image(["scenarios"], load=load)[1]), given)


class Functions(unittest.TestCase):
    SOURCE = "import json\nLIMIT = 3\ndef helper(x):\n    return x * LIMIT\ndef triple(x):\n    return {'é': helper(x)}\n"

    def answers(self, scoping, source=SOURCE, name="triple", **arguments):
        task = {"functions": [{"name": name, "description": "d", "parameters": {"type": "object"}, "source": source}], "scoping": scoping}
        return json.loads(opened(["call", name, json.dumps(arguments)], task=task)[0])

    def test_clean_scoping_sees_what_stands_beside_the_function(self):
        self.assertEqual(self.answers("clean", x=2), {"text": '{"é": 6}', "failed": False})

    def test_published_scoping_does_not(self):
        text = "an error occured when call triple: name 'helper' is not defined"
        self.assertEqual(self.answers("published", x=2), {"text": text, "failed": True})

    def test_published_scoping_has_what_the_executors_own_file_imports(self):
        source = "def f():\n    return json.dumps([sha256(b'').hexdigest()[:4], 1])\n"
        self.assertEqual(self.answers("published", source, "f"), {"text": '["e3b0", 1]', "failed": False})

    def test_results_are_shown_as_each_scoping_shows_them(self):
        source = "def f(x):\n    return x\n"
        self.assertEqual(self.answers("clean", source, "f", x=True)["text"], "true")
        self.assertEqual(self.answers("published", source, "f", x=True)["text"], "True")
        self.assertEqual(self.answers("clean", source, "f", x="as is")["text"], "as is")

    def test_memory_that_is_used_up_is_an_error(self):
        found = self.answers("clean", "def f():\n    raise MemoryError", "f")
        self.assertEqual(found["error"]["kind"], "exhausted")

    @unittest.skipIf(sys.version_info < (3, 12), "the parser does not say what it lacks")
    def test_source_that_is_nested_too_deeply_is_a_failure(self):
        found = self.answers("clean", "def f():\n    return eval('-' * 20000 + '1')", "f")
        self.assertEqual((found["text"][:18], found["failed"]), ("error: MemoryError", True))

    def test_a_failure_is_an_observation(self):
        self.assertEqual(self.answers("clean"), {
            "text": "error: TypeError: triple() missing 1 required positional argument: 'x'", "failed": True,
        })  # fmt: skip
        self.assertTrue(self.answers("clean", "def f(:", "f")["text"].startswith("error: SyntaxError:"))
        self.assertEqual(self.answers("clean", "def f():\n    raise SystemExit(1)", "f")["text"], "error: SystemExit: 1")


GUESS = '''
import itertools
import random


class Place:
    def __init__(self):
        self.x = 1


class Last:
    def __init__(self):
        self.number = None
        self.place = Place()


class Base:
    def reset(self, low: int = 1, high: int = 10, **row):
        self.secret = random.randint(low, high)
        self.tries = []
        self.dice = random.Random(low)
        self.ids = itertools.count(1)
        self.words = iter(["a"])
        self.last = Last()
        self.odd = [float("nan"), self.dice, {2, 1}]
        self.odd.append(self.odd)
        return f"Guess a number from {low} to {high}."

    def get_reward(self) -> float:
        self.secret += 0 if self.secret in self.tries else 1
        return 1.0 if self.secret in self.tries else 0.0


class Guess(Base):
    """A number to guess."""

    def guess(self, number: int) -> str:
        """
        Guesses the number.

        Args:
            number: The guess.

        Returns:
            How it compares.
        """
        self.tries.append(number)
        if number == self.secret:
            return "right"
        raise ValueError("too low" if number < self.secret else "too high")

    async def hint(self) -> dict:
        """Tells something."""
        return {"even": self.secret % 2 == 0}

    def look(self):
        """Shows a picture."""
        return [{"type": "image", "image": b""}, {"type": "text", "text": "a box"}]

    def _hidden(self):
        pass
'''
GUESS_FILE = {"servers": {"Guess": {"source": GUESS, "file": "Guess.py"}}}


class TrlClasses(unittest.TestCase):
    def asked(self, *calls, row=None, seed=7):
        task = {"servers": {"Guess": row}}
        return [json.loads(answer) for answer in image(["open", json.dumps(task), seed], *calls, load=GUESS_FILE)[1:]]

    def test_reset_takes_the_row_and_begins_the_conversation(self):
        opened, state, again = self.asked(["state"], ["state"], row={"low": 5, "high": 5, "answer": "x"})
        self.assertEqual(opened["messages"], [{"role": "user", "content": "Guess a number from 5 to 5."}])
        # Generators and iterators are no data, and are not used up.
        held = {"secret": 5, "tries": [], "last": {"number": None, "place": {"x": 1}}, "odd": ["nan", "<Random>", [1, 2], "<list>"]}
        self.assertEqual((state, again), ({"Guess": held}, {"Guess": held}))
        self.assertEqual(self.asked(row=None)[0]["messages"][0]["content"], "Guess a number from 1 to 10.")

    def test_public_methods_are_tools_of_their_own_names(self):
        tools = {tool["name"]: tool for tool in self.asked()[0]["tools"]}
        self.assertEqual(list(tools), ["guess", "hint", "look"])
        self.assertEqual(tools["guess"]["description"], "Guesses the number.")
        properties = {"number": {"type": "integer", "description": "The guess."}}
        self.assertEqual(tools["guess"]["input_schema"]["properties"], properties)

    def test_results_and_exceptions_are_shown_as_trl_shows_them(self):
        _, wrong, right, hint, look, bad = self.asked(
            call("guess", number=4), call("guess", number=5), call("hint"), call("look"), call("guess", no=1), row={"low": 5, "high": 5}
        )
        self.assertEqual(wrong, {"text": "{'error': 'too low'}", "failed": True})
        self.assertEqual(right, {"text": "right", "failed": False})
        self.assertEqual(hint, {"text": "{'even': False}", "failed": False})
        self.assertEqual(look, {"text": "a box", "failed": False})
        self.assertIn("unexpected keyword argument 'no'", bad["text"])

    def test_the_reward_of_the_class_is_the_verdict(self):
        verify = ["verify", None, "{}"]
        _, before, _, after = self.asked(verify, call("guess", number=5), verify, row={"low": 5, "high": 5})
        self.assertEqual(before, {"success": False, "score": 0.0, "reason": "get_reward of Guess: 0"})
        self.assertEqual((after["success"], after["score"]), (True, 1.0))
        # What get_reward changes is a copy.
        _, before, state = self.asked(verify, ["state"], row={"low": 5, "high": 5})
        self.assertEqual(state["Guess"]["secret"], 5)
        asked = ["verify", None, json.dumps({"state": state})]
        self.assertTrue(self.asked(asked, row={"low": 5, "high": 5})[1]["success"])
        odd = {"servers": {"Guess": {"source": GUESS.replace("1.0 if", "2.0 if"), "file": "Guess.py"}}}
        task = json.dumps({"servers": {"Guess": {"low": 5, "high": 5}}})
        answer = image(["open", task, 1], call("guess", number=5), verify, load=odd)[3]
        self.assertIn("get_reward of 'Guess' returned 2.0", json.loads(answer)["error"]["message"])

    def test_a_snapshot_continues_elsewhere(self):
        _, _, snapshot = image(["open", json.dumps({"servers": {"Guess": {}}}), 3], ["snapshot"], load=GUESS_FILE)
        _, _, state, hint = image(["restore", snapshot], ["state"], call("hint"), load=GUESS_FILE)
        _, _, expected, same = image(["open", json.dumps({"servers": {"Guess": {}}}), 3], ["state"], call("hint"), load=GUESS_FILE)
        self.assertEqual((state, hint), (expected, same))


class Errors(unittest.TestCase):
    def test_memory_that_is_used_up_is_an_error_in_words(self):
        found = json.loads(opened(["call", "Shop-leave", '{"how": "memory"}'])[0])
        self.assertEqual(found, {"error": {"kind": "exhausted", "message": "there is no memory left of what a session may have"}})

    def test_a_state_that_looks_like_an_error_is_none(self):
        done = run("""
            import json, rlf_environment as environment
            source = SHOP
            environment.load(json.dumps({"servers": {"error": {"source": source}}}))
            failed = environment.open('{"servers": {"none": null}}', 1)
            environment.open('{"servers": {"error": null}}', 1)
            state = environment.state()
            assert state.startswith('{"error":'), state
            print([isinstance(text, environment.Failure) for text in (failed, state)])
        """)
        self.assertEqual(done, "[True, False]\n")


class WarmUp(unittest.TestCase):
    def test_nothing_of_it_is_left(self):
        done = run("""
            import json, linecache, random, sys, rlf_environment as environment
            from mcp.server.fastmcp import FastMCP

            def seen():
                # pydantic imports some of its modules when they are first used.
                return {name for name in sys.modules if "pydantic" not in name}, set(linecache.cache)

            before = seen()
            answers = []

            def ask(what, arguments):
                answers.append((what, getattr(environment, what)(*arguments)))
                return answers[-1][1]

            environment.warmup.play(ask)
            failed = [answer for answer in answers if isinstance(answer[1], environment.Failure)]
            assert not failed, failed
            verdicts = {json.loads(answer)["success"] for what, answer in answers if what == "verify"}
            random_now = random.getstate()
            random.seed(0)
            left = seen() != before, FastMCP.made, random_now != random.getstate()
            print(verdicts, left, json.loads(environment.state())["error"]["message"], environment.scenarios())
        """)
        self.assertEqual(done, "{False, True} (False, [], False) no session is open []\n")


def run(program):
    """What a program prints that finds the packages, and the shop's file as `SHOP`."""
    done = subprocess.run(
        [sys.executable, "-c", f"SHOP = {SHOP!r}\n{textwrap.dedent(program)}"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": PATH, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    unittest.main()
