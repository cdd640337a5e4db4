import unittest


class Arithmetic(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1 + 1, 2)


if __name__ == "__main__":
    import io
    import sys

    sys.stderr = io.StringIO()
    unittest.main()
