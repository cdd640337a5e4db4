"""The parts of the adapters that need no trainer. `cargo xtask clients trainers` runs the rest."""

import asyncio
import inspect
import unittest
from pathlib import Path

from rlf_host import Environment, Plugins, Tool
from rlf_host.adapters import trl, verl
from rlf_host.schemas import simple_property

LIBRARY = Path(__file__).parents[3] / "plugins" / "environments" / "Library.py"


class Schemas(unittest.TestCase):
    def test_a_property_has_one_type(self):
        for schema, wanted in [
            ({"type": ["null", "integer"]}, {"type": "integer"}),
            ({"enum": [True, False]}, {"type": "boolean", "enum": [True, False]}),
            ({"enum": [None, "a"]}, {"type": "string", "enum": ["a"]}),
            ({"const": 1}, {"type": "integer"}),
            ({"$ref": "#/$defs/x"}, {"type": "object"}),
            ({}, {"type": "string"}),
            (True, {"type": "string"}),
            ({"type": "null"}, {"type": "string"}),
        ]:
            self.assertEqual(simple_property(schema), wanted)


class Verl(unittest.TestCase):
    def test_a_schema_has_only_what_verl_reads(self):
        tool = Tool("t", "Does it.", {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}})
        function = verl._schema(tool)["function"]
        self.assertEqual(function["parameters"]["properties"], {"a": {"type": "string"}})

    def test_only_the_text_after_the_last_observation_is_graded(self):
        score = verl.reward_function(Plugins(only=["numeric-match"]), "numeric-match", "match")
        text = (
            "assistant\n<tool_call>..</tool_call>\nuser\n<tool_response>\n<answer>42</answer>\n</tool_response>"
            "\nassistant\n<answer>41</answer>"
        )
        graded = asyncio.run(score(data_source="d", solution_str=text, ground_truth="42"))
        self.assertEqual(graded["score"], 0.0)
        graded = asyncio.run(score(data_source="d", solution_str=text, ground_truth="41"))
        self.assertEqual(graded["score"], 1.0)


class Trl(unittest.TestCase):
    def test_a_method_has_the_signature_and_the_docstring_of_its_tool(self):
        schema = {
            "type": "object",
            "properties": {"day": {"enum": ["Mon", "Tue"], "default": "Mon"}, "count": {"type": "integer"}},
            "required": ["count"],
        }
        method = trl._method(Tool("book", "Books it.", schema))
        self.assertEqual(str(inspect.signature(method)), "(self, count: int, day: str = 'Mon') -> str")
        self.assertIn('day: day (choices: ["Mon", "Tue"])', method.__doc__)

    def test_names_that_python_cannot_use_are_refused_with_the_tool(self):
        for name in ("class-id", "from", "self"):
            schema = {"type": "object", "properties": {name: {"type": "string"}}}
            with self.assertRaisesRegex(ValueError, f"tool `book` has a parameter `{name}`"):
                trl._method(Tool("book", "Books it.", schema))

    def test_what_cannot_be_graded_is_none(self):
        reward = trl.reward_func(Plugins(only=["numeric-match"]), "numeric-match", "match")
        rewards = asyncio.run(reward(prompts=["q", "q", "r"], completions=["1", "2", "1"], answer=["1", "1", None]))
        self.assertEqual(rewards, [1.0, 0.0, None])

    def test_a_lost_session_has_no_reward(self):
        environment = trl.environment_class(Environment(LIBRARY))()
        environment.reset()
        environment._session.close()
        self.assertIsNone(environment.get_reward())


if __name__ == "__main__":
    unittest.main()
