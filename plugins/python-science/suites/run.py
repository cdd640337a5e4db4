"""Runs the test suites of packages in the interpreter python-science, and prints a table of what passes.

    python3 plugins/python-science/suites/run.py [PATTERN]

PATTERN selects files, such as `linalg`. It needs a built `rlf-host`, the built interpreter (`cargo xtask science`), pip, and
five minutes.
"""

import fnmatch
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
HOST = REPOSITORY / "target/release/rlf-host"
PLUGINS = REPOSITORY / "target/science"
SUITES = {"numpy": ("numpy/_core/tests", "numpy/linalg/tests")}
LIMITS = ["--time-ms", "900000", "--memory", "1000MiB", "--files", "200MiB"]


def wheels(folder):
    """Downloads the wheels of requirements.txt, for a Python that has them."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--python-version", "3.13", "--platform", "manylinux_2_28_x86_64", "--dest", folder]
    command += ["--requirement", HERE / "requirements.txt"]
    subprocess.run(command, check=True)
    return sorted(pathlib.Path(folder).glob("*.whl"))


def archive(wheels, suite):
    """The files of a suite and of the packages that run it, as one archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as whole:
        for wheel in wheels:
            package = wheel.name.partition("-")[0]
            with zipfile.ZipFile(wheel) as content:
                for name in content.namelist():
                    if package not in SUITES:
                        whole.writestr(f"lib/{name}", content.read(name))
                    elif name.startswith(suite):
                        whole.writestr(name, content.read(name))
        parts = suite.split("/")
        for depth in range(1, len(parts)):
            whole.writestr("/".join([*parts[:depth], "__init__.py"]), "")
    return data.getvalue()


def main(pattern="*"):
    total = [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        found = wheels(folder)
        print(f"{'file':52}{'passed':>8}{'failed':>8}{'skipped':>8}{'expected':>9}")
        for suite in [suite for suites in SUITES.values() for suite in suites]:
            packed = pathlib.Path(folder) / "suite.zip"
            packed.write_bytes(archive(found, suite))
            names = zipfile.ZipFile(packed).namelist()
            for name in sorted(fnmatch.filter(names, f"{suite}/test_*.py")):
                module = name.removesuffix(".py").replace("/", ".")
                if not fnmatch.fnmatch(module, f"*{pattern}*"):
                    continue
                command = [HOST, "run", "--lang", "python-science", "--plugins", PLUGINS, *LIMITS]
                ended = subprocess.run(
                    [*command, "--file", f"{packed}=suite.zip", HERE / "inside.py", module], capture_output=True, text=True
                )
                lines = [line for line in ended.stdout.splitlines() if line.startswith("counts ")]
                if not lines:
                    last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
                    print(f"{module:52}  did not end: {last[:200]}", flush=True)
                    continue
                counts, failed = json.loads(lines[-1].removeprefix("counts "))
                total = [a + b for a, b in zip(total, counts)]
                print(f"{module:52}" + "".join(f"{count:>8}" for count in counts), "; ".join(failed[:4]), flush=True)
    print(f"{'all':52}" + "".join(f"{count:>8}" for count in total))


main(*sys.argv[1:])
