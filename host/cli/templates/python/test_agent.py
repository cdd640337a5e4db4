"""Runs the agent natively. Once: pip install SDK. Then: python3 -m unittest"""

import json
import unittest

import NAME  # noqa: F401
import rlf
from rlf import testing

CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
TASK = {"id": "1", "source": "test", "messages": [{"role": "user", "content": "1 + 2?"}], "tools": []}


class Tests(unittest.TestCase):
    def test_the_policy_reads_the_results_of_its_calls(self):
        turns = [{"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "assistant", "content": "3"}]
        asked = []

        def policy(question):
            asked.append(json.loads(json.dumps(question.chat["messages"])))
            return rlf.Answer("", message=turns[len(asked) - 1])

        testing.answer_questions(policy)
        testing.answer_tools(lambda name, arguments: str(arguments["a"] + arguments["b"]))
        self.assertEqual(testing.call("NAME", TASK).text, "")
        self.assertEqual(asked[1][1:], [turns[0], {"role": "tool", "tool_call_id": "a", "content": "3"}])

    def test_no_further_turn_is_a_failure_and_no_bug(self):
        def policy(question):
            raise rlf.GateError("exhausted", "no turn is left")

        testing.answer_questions(policy)
        led = testing.call("NAME", TASK)
        self.assertEqual((led.failed, led.text), (True, "no turn is left"))
