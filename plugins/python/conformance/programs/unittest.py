import unittest


class Arithmetic(unittest.TestCase):
    def setUp(self):
        self.value = 2

    def test_good(self):
        self.assertEqual(self.value + 2, 4)

    def test_bad(self):
        self.assertEqual(self.value * 2, 5, "two times two")

    @unittest.skip("not now")
    def test_skipped(self):
        raise AssertionError

    def test_sub(self):
        for number in range(2):
            with self.subTest(number=number):
                self.assertIn(number, [0, 1])


result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(Arithmetic).run(result)
print(result.testsRun, len(result.failures), len(result.errors), len(result.skipped), result.wasSuccessful())
print(result.failures[0][1])
