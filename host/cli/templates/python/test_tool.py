"""Runs the tool natively. Once: pip install SDK. Then: python3 -m unittest"""

import unittest

import NAME  # noqa: F401
from rlf import testing


class Tests(unittest.TestCase):
    def test_the_longest_words_come_first(self):
        found = testing.call("NAME", {"text": "a red fox jumped", "longest": 2}).json()
        self.assertEqual(found, {"words": 4, "longest": ["jumped", "fox"]})

    def test_a_wrong_number_is_a_failure_that_says_why(self):
        result = testing.call("NAME", {"text": "a", "longest": 11})
        self.assertTrue(result.failed)
        self.assertEqual(result.text, "longest is 1 to 10")
