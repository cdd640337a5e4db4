"""The programs of conformance/ under the driver in the machine's own python3: what CPython's expectations are, the driver
keeps. What only a sandbox does is not tried here."""

import sys
import unittest

import driver
import cases

OUTCOMES = ("completed", "exited", "raised", "rejected")
# Programs that read properties of their system, or that are ended from outside.
NEEDS_A_SANDBOX = {"devices", "files_temporary", "system"}


def exit_code(result, status):
    """That of the process that python3 would have been."""
    if result is None:
        return status & 0xFF
    outcome = result[1][0]
    return outcome[1] & 0xFF if outcome[0] == 1 else int(outcome[0] > 1)


class Conformance(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if sys.version_info < (3, 13):
            raise unittest.SkipTest("tracebacks look as expected from Python 3.13 on")
        cls.driver = driver.Driver()

    @classmethod
    def tearDownClass(cls):
        cls.driver.close()

    def test_programs_do_what_they_do_under_python3(self):
        tried = 0
        for path in cases.programs():
            case = cases.read(path)
            if not case.get("native", True) or path.stem in NEEDS_A_SANDBOX:
                continue
            tried += 1
            with self.subTest(path.stem):
                result, out, err, status = self.driver.execute(
                    path.read_text(encoding="utf-8"),
                    case.get("arguments", ()),
                    case.get("stdin", "").encode(),
                    cases.bytes_of(case.get("files", {})),
                    case.get("fetch", ()),
                    case.get("modules", {}),
                    case.get("seed", 0),
                )
                found = {"exit-code": exit_code(result, status), "stdout": out, "stderr": err}
                if result is not None and result[0] == 0 and result[1][1]:
                    found["files"] = {name: driver.data(content).decode() for name, content in result[1][1]}
                self.assertEqual(cases.differences(cases.expected_in_sandbox(case), found), [])
        self.assertGreater(tried, 60)

    def test_cells_leave_what_they_should(self):
        for path in sorted(cases.SESSIONS.glob("*.toml")):
            case = cases.tomllib.loads(path.read_text(encoding="utf-8"))
            (status, (results, files)), *_ = self.driver.session(
                [cell["code"] for cell in case["cell"]],
                cases.bytes_of(case.get("files", {})),
                case.get("modules", {}),
                case.get("seed", 0),
                case.get("fetch", ()),
            )
            self.assertEqual(status, 0)
            for number, (expected, result) in enumerate(zip(case["cell"], results, strict=True), 1):
                with self.subTest(path.stem, cell=number):
                    self.assertEqual(cases.differences(cell(expected), cell_found(result)), [])
            found = {name: driver.data(content).decode() for name, content in files}
            self.assertEqual(found, case.get("expected", {}).get("files", {}))


def cell(expected):
    """What a case expects of a cell, with what it need not say."""
    expected = {"outcome": "completed", "value": None, **expected}
    del expected["code"]
    if "displays" in expected:
        # Bytes that are not UTF-8 are written as the characters with the same numbers.
        expected["displays"] = [
            [kind, shown if kind.startswith(("text/", "application/")) else shown.encode("latin-1").decode("latin-1")]
            for kind, shown in expected["displays"]
        ]
    return expected


def cell_found(result):
    """A cell's result under the keys of a case."""
    outcome, value, displays, out, err = result
    found = {"outcome": OUTCOMES[outcome[0]], "value": value, "stdout": driver.data(out).decode()}
    found["stderr"] = driver.data(err).decode()
    found["displays"] = [
        [kind, driver.data(shown).decode("utf-8" if kind.startswith(("text/", "application/")) else "latin-1")]
        for kind, shown in displays
    ]
    if outcome[0] == 1:
        found["exit-code"] = outcome[1]
    if outcome[0] > 1:
        found["kind"], found["message"], found["traceback"] = outcome[1]
    return found


if __name__ == "__main__":
    unittest.main()
