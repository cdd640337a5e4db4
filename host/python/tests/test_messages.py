"""Conversations in the forms that trainers keep them."""

import doctest
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
    tests.addTests(doctest.DocFileSuite(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS))
    return tests


class Messages(unittest.TestCase):
    def test_answers_are_put_into_the_order_of_their_calls(self):
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
        read = conversation(
            [
                {"role": "assistant", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "b", "content": "of b"},
                {"role": "tool", "tool_call_id": "a", "content": "of a"},
                {"role": "assistant", "content": "done"},
            ]
        )
        self.assertEqual([message["content"] for message in read], [None, "of a", "of b", "done"])
        self.assertEqual(read[0]["tool_calls"][0], {"name": "a", "arguments": {}, "call-id": "a"})

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
