"""Runs the reward natively. Once: pip install SDK. Then: python3 -m unittest"""

import unittest

import NAME  # noqa: F401
from rlf import testing


class Tests(unittest.TestCase):
    def test_a_right_answer_with_one_call(self):
        tried = testing.trajectory().called("add", {"a": 1, "b": 2}, "3").answered("3")
        self.assertEqual(testing.grade(testing.task("3"), tried), {"right": True, "brief": 0.5})

    def test_no_answer_is_wrong(self):
        self.assertFalse(testing.grade(testing.task("3"), testing.trajectory().ended("max-turns"))["right"])
