"""The examples of the README run as they are."""

import pathlib
import re
import sys
import types
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(FOLDER))

from rlf import testing  # noqa: E402

README = (FOLDER / "README.md").read_text()


def examples(containing):
    """The Python examples that contain a text, without fences."""
    found = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return [example for example in found if containing in example]


def executed(source, name):
    """The example as a module."""
    module = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))
    return module


class Readme(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def test_the_tool_and_its_test(self):
        (dice,) = examples("def roll(")
        sys.modules["dice"] = executed(dice, "dice")
        self.addCleanup(sys.modules.pop, "dice")
        self.assertTrue(2 <= int(testing.call("roll", {"count": 2}).text) <= 12)
        (test,) = examples("def test_")
        executed(test, "test_dice").test_no_dice_is_a_failure_that_says_why()

    def test_the_reward_that_runs_programs(self):
        (runs,) = examples("def runs(")
        executed(runs, "runs")
        testing.answer_tools(lambda name, arguments: "42")
        testing.answer_programs(lambda program: "42\n")
        terms = testing.grade(testing.task("42"), testing.trajectory().answered("print(6 * 7)"))
        self.assertEqual(terms, {"runs": 1.0, "right": 1.0})

    def test_the_reward(self):
        (right,) = examples("def right(")
        executed(right, "right")
        answered = testing.trajectory().answered("4")
        self.assertEqual(testing.grade(testing.task("4"), answered), {"right": 1.0})

    def test_the_state(self):
        (find,) = examples("@rlf.init")
        executed(find, "find")
        testing.bind("corpus", {"a.txt": "a red fox\na blue bird\na red bird"})
        testing.init({"limit": 2})
        self.assertEqual(testing.call("find", {"word": "red"}).json(), ["a red fox"])


if __name__ == "__main__":
    unittest.main()
