"""Runs one file of a suite with pytest, inside the sandbox. The first argument is the file's module.

The wheels are beside this program as one archive. The suite's files become a part of the package that the interpreter has.
"""

import importlib
import os
import sys
import types
import zipfile

ROOT = "/tmp/suite"
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

    def pytest_report_teststatus(self, report, config):
        return "", "", ""


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
    import pytest

    counts = Counts()
    status = pytest.main([*OPTIONS, f"{folder}/{module.rpartition('.')[2]}.py"], plugins=[counts])
    print("\ncounts", status, *counts.counts.values(), *counts.failed)


main(sys.argv[1])
