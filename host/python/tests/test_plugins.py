"""Tools and rewards of plugins."""

import asyncio
import tempfile
import unittest
from pathlib import Path

from rlf_host import GradeError, LoadError, Plugins

DICE = '''
import random
import rlf

@rlf.tool
def roll(sides: int = 6) -> int:
    """Rolls a die."""
    if sides < 1:
        raise rlf.Failure("sides is at least 1")
    return random.randint(1, sides)
'''

RIGHT = """
import rlf

@rlf.reward
def right(task: rlf.Task, trajectory: rlf.Trajectory) -> dict[str, float]:
    calls = [call.name for turn in trajectory.turns() for call in turn.calls]
    return {"right": float(trajectory.answer == task.reference), "calls": len(calls)}
"""


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plugins = Plugins(only=["calculator"])

    def test_a_tool_is_listed_as_models_see_it(self):
        tool = self.plugins.tools["calculate"]
        self.assertTrue(tool.deterministic)
        function = tool.openai()["function"]
        self.assertEqual(function["name"], "calculate")
        self.assertEqual(function["parameters"]["required"], ["expression"])

    def test_a_result_says_how_a_call_ended(self):
        good = self.plugins.call("calculate", {"expression": "2^10"})
        self.assertEqual((good.ended, good.text), ("ok", "1024"))
        bad = self.plugins.call("calculate", {"expression": "1/"})
        self.assertEqual((bad.ended, bad.fault), ("failed", "model"))
        wrong = self.plugins.call("calculate", {"expresion": "1"})
        self.assertEqual((wrong.ended, wrong.ok), ("invalid-arguments", False))
        self.assertIn("expression", wrong.text)

    def test_arguments_that_are_no_json_are_an_answer_to_the_model(self):
        good, *wrong = self.plugins.call_many(
            ("calculate", {"expression": value}) for value in ("1+1", float("nan"), 2**70, "\ud83d")
        )
        self.assertEqual(good.text, "2")
        self.assertEqual({(result.ended, result.fault) for result in wrong}, {("invalid-arguments", "model")})

    def test_the_calls_of_a_turn_answer_in_order(self):
        results = self.plugins.call_many(("calculate", {"expression": f"{n}*{n}"}) for n in range(100))
        self.assertEqual([result.text for result in results], [str(n * n) for n in range(100)])

    def test_asyncio(self):
        result = asyncio.run(self.plugins.call_async("calculate", {"expression": "1+1"}))
        self.assertEqual(result.text, "2")

    def test_unknown_names_are_answered_with_the_nearest(self):
        with self.assertRaisesRegex(LookupError, "did you mean `calculate`"):
            self.plugins.call("calculat", {})
        with self.assertRaisesRegex(LookupError, "there is no plugin calculater"):
            Plugins(only=["calculater"])
        with self.assertRaises(TypeError):
            Plugins(only="calculator")
        with self.assertRaisesRegex(LookupError, "there is no reward `calculator`"):
            self.plugins.grade("calculator", ["1"], reference="1")
        with self.assertRaisesRegex(LookupError, "there is no reward `numeric-mach`"):
            Plugins(only=["numeric-match"]).grade("numeric-mach", ["1"], reference="1")
        with self.assertRaisesRegex(ValueError, r"grants: calculator.*limit"):
            Plugins(grants={"calculator": {"limit": 1}}, only=["calculator"])


class OwnPlugins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_python_file_is_a_plugin(self):
        (self.folder / "dice.py").write_text(DICE)
        plugins = Plugins(self.folder, only=["dice"])
        rolls = [plugins.call("roll", {"sides": 20}, seed=seed).text for seed in (1, 1, 2, 3)]
        self.assertEqual(rolls[0], rolls[1])
        self.assertGreater(len(set(rolls)), 1)
        self.assertEqual(plugins.call("roll", {"sides": 0}).text, "sides is at least 1")

    def test_a_broken_plugin_of_ones_own_is_an_error(self):
        (self.folder / "broken.py").write_text("import rlf\n@rlf.tool\ndef f(x: complex):\n    return x\n")
        with self.assertRaisesRegex(LoadError, "broken"):
            Plugins(self.folder, only=["broken"])
        plugins = Plugins(self.folder, only=["broken"], strict=False)
        self.assertIn("broken", plugins.problems)

    def test_a_reward_sees_calls_and_the_answer(self):
        (self.folder / "right.py").write_text(RIGHT)
        plugins = Plugins(self.folder, only=["right"])
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        scores = plugins.grade(
            "right",
            [
                "7",
                [
                    {"role": "user", "content": "?"},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "7"},
                    {"role": "assistant", "content": "<think>8</think>7"},
                ],
                [{"role": "assistant", "content": "", "tool_calls": [call]}],
            ],
            reference="7",
        )
        self.assertEqual(
            [score.terms for score in scores],
            [{"right": 1.0, "calls": 0.0}, {"right": 1.0, "calls": 1.0}, {"right": 0.0, "calls": 1.0}],
        )

    def test_what_cannot_be_graded_has_no_terms(self):
        (self.folder / "never.py").write_text(
            "import rlf\n@rlf.reward\ndef never(task: rlf.Task) -> float:\n    raise ValueError('no gold')\n"
        )
        (score,) = Plugins(self.folder, only=["never"]).grade("never", ["1"], reference=None)
        self.assertIsNone(score.terms)
        with self.assertRaisesRegex(GradeError, "no gold"):
            score.term("never")


class Rewards(unittest.TestCase):
    def test_the_rule_finds_the_answer(self):
        plugins = Plugins(only=["exact-match"])

        def exact(text, rule):
            (score,) = plugins.grade("exact-match", [text], reference="Paris", answer=rule)
            return score.terms["em"]

        self.assertEqual(exact("It is <answer>Paris</answer>.", "tag"), 1.0)
        self.assertEqual(exact("It is <answer>Paris</answer>.", "final-turn"), 0.0)
        self.assertEqual(exact("\\boxed{Paris}", "boxed"), 1.0)
        with self.assertRaisesRegex(ValueError, "answer"):
            exact("Paris", "tags")
        with self.assertRaises(TypeError):
            plugins.grade("exact-match", "Paris", reference="Paris")
        (score,) = plugins.grade("exact-match", ["Paris"], reference="Paris")
        with self.assertRaisesRegex(LookupError, "it has: em"):
            score.term("match")


if __name__ == "__main__":
    unittest.main()
