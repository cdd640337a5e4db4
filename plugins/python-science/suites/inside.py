"""Runs one file of a suite with pytest, inside the sandbox. The first argument is the file's module.

The wheels are beside this program as one archive. The suite's files become a part of the package that the interpreter has.
"""

import importlib
import json
import os
import sys
import types
import zipfile

ROOT = "/tmp/suite"
MISSING = ["numpy._core._rational_tests", "numpy._core._multiarray_tests", "numpy._core._umath_tests"]
OPTIONS = ["-q", "--tb=no", "--capture=no", "--no-header", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:logging", "-W", "ignore"]


class Counts:
    """Counts how tests ended."""

    def __init__(self):
        self.counts = dict.fromkeys(("passed", "failed", "skipped", "xfailed"), 0)
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        ended = "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
        self.counts[ended] += 1
        if ended == "failed":
            self.failed.append(report.nodeid.rpartition("::")[2])

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append("not collected: " + report.longreprtext.strip().splitlines()[-1])

    def pytest_report_teststatus(self, report, config):
        return "", "", ""


def leave_out(name):
    """Stands in for a module in C that only tests use and that the interpreter has not: a test that calls it is skipped."""
    import pytest

    def function(*arguments, **keywords):
        pytest.skip(f"{name} is not there")

    stand_in = types.ModuleType(name)
    stand_in.__getattr__ = lambda _: function
    sys.modules[name] = stand_in


def main(module):
    package = module.rpartition(".")[0]
    with zipfile.ZipFile("suite.zip") as archive:
        archive.extractall(ROOT)
    sys.dont_write_bytecode = True
    sys.path.insert(0, f"{ROOT}/lib")
    folder = f"{ROOT}/{package.replace('.', '/')}"
    try:
        tests = importlib.import_module(package)
    except ImportError:
        tests = sys.modules[package] = types.ModuleType(package)
    tests.__path__ = [folder]
    os.chdir(ROOT)
    for name in MISSING:
        leave_out(name)
    import pytest

    counts = Counts()
    pytest.main([*OPTIONS, f"{folder}/{module.rpartition('.')[2]}.py"], plugins=[counts])
    print("\ncounts", json.dumps([list(counts.counts.values()), counts.failed]))


main(sys.argv[1])
