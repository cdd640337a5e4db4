"""Conversations in the forms that trainers keep them."""

import doctest
import os
import unittest
from pathlib import Path

import rlf_host
from rlf_host import messages, plugins, programs, schemas
from rlf_host.messages import conversation


def load_tests(loader, tests, pattern):
    """Adds the examples of the documentation."""
    for module in (rlf_host, messages, plugins, programs, schemas):
        tests.addTests(doctest.DocTestSuite(module))
    readme = Path(__file__).parents[1] / "README.md"
    root = str(readme.parents[2])
    readme_tests = doctest.DocFileSuite(
        str(readme),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
        # Its paths are relative to the repository.
        setUp=lambda test: os.chdir(root),
    )
    tests.addTests(readme_tests)
    return tests


class Messages(unittest.TestCase):
    def test_a_tools_answer_keeps_the_id_of_its_call(self):
        calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        called, answered = conversation(
            [
                {"role": "assistant", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ]
        )
        self.assertEqual(called["tool_calls"], [{"name": "f", "arguments": {}, "call-id": "c1"}])
        self.assertEqual(answered["tool_call_id"], "c1")

    def test_what_a_model_writes_is_never_an_error(self):
        deep = "[" * 100_000
        for arguments in ({"x": float("nan")}, {"x": 1e400}, {"x": 2**70}, '{"x": "\\ud83d"}', deep, "[" * 200):
            calls = [{"function": {"name": None, "arguments": arguments}, "id": 7}]
            (read,) = conversation([{"role": "assistant", "content": "\ud83d", "tool_calls": calls}])
            self.assertEqual(read["content"], "\ufffd")
            self.assertEqual(read["tool_calls"][0]["call-id"], "7")
            self.assertIsInstance(read["tool_calls"][0]["arguments"], str)

    def test_unread_fields_are_dropped_and_arguments_that_are_no_json_stay(self):
        (read,) = conversation(
            [
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}],
                    "refusal": None,
                    "tool_calls": [{"function": {"name": "f", "arguments": "{"}}],
                }
            ]
        )
        self.assertEqual(read["content"], [{"text": "a"}, {"text": "[image_url]"}])
        self.assertEqual(read["tool_calls"], [{"name": "f", "arguments": "{"}])

    def test_roles_of_other_names(self):
        self.assertEqual(conversation([{"role": "developer", "content": "x"}])[0]["role"], "system")


if __name__ == "__main__":
    unittest.main()
