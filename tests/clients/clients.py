"""The field's own clients against a service: SandboxFusion's SDK, the reward client of verl, the grader of tinker-cookbook.

`cargo xtask clients` installs both, starts a service and runs this with its address. Each case is one promise of
docs/serve.md, checked through the client that will rely on it.
"""

import asyncio
import base64
import importlib
import os
import pathlib
import sys
import traceback
import types

import sandbox_fusion as sdk

URL = sys.argv[1].rstrip("/")


def run(code, **more):
    more.setdefault("language", "python")
    return sdk.run_code(sdk.RunCodeRequest(code=code, **more), endpoint=URL, max_attempts=1)


def notebook(*cells, **more):
    request = sdk.RunJupyterRequest(cells=list(cells), **more)
    return sdk.run_jupyter(request, endpoint=URL, max_attempts=1)


def sdk_prints_and_reads_input():
    answer = run("print(input() * 2)", stdin="ab\n")
    assert answer.status == sdk.RunStatus.Success
    assert answer.compile_result is None
    assert answer.run_result.stdout == "abab\n"
    assert answer.run_result.return_code == 0
    assert answer.run_result.execution_time < 10


def sdk_sees_a_traceback_and_a_syntax_error():
    answer = run("x = 1\nassert x == 2, 'no'")
    assert answer.status == sdk.RunStatus.Failed
    assert answer.run_result.status == sdk.CommandRunStatus.Finished
    assert answer.run_result.return_code == 1
    assert "AssertionError: no" in answer.run_result.stderr
    assert "line 2" in answer.run_result.stderr
    assert "SyntaxError" in run("int a = 1").run_result.stderr


def sdk_sees_time_run_out_with_what_was_printed():
    for code in ["import time\nprint('a', flush=True)\ntime.sleep(100)", "print('a', flush=True)\nwhile True: pass"]:
        answer = run(code, run_timeout=0.5)
        assert answer.status == sdk.RunStatus.Failed, answer
        assert answer.run_result.status == sdk.CommandRunStatus.TimeLimitExceeded
        assert answer.run_result.return_code is None
        assert answer.run_result.stdout == "a\n", answer
    mapping = sdk.SummaryMapping(RunTimeout="late")
    assert sdk.summary_run_code_result(answer, mapping) == "late"


def sdk_gives_and_fetches_files():
    answer = run(
        "text = open('in/a.bin', 'rb').read()\nopen('out.bin', 'wb').write(text[::-1])",
        files={"in/a.bin": base64.b64encode(b"\x00\xffab").decode(), "none": None},
        fetch_files=["out.bin", "missing"],
    )
    assert answer.status == sdk.RunStatus.Success, answer
    assert {name: base64.b64decode(data) for name, data in answer.files.items()} == {"out.bin": b"ba\xff\x00"}


def sdk_raises_for_a_language_that_is_not_installed():
    try:
        run("int main() {}", language="cpp")
    except Exception as error:
        assert "no interpreter of `cpp` is installed" in str(error), error
    else:
        raise AssertionError("no error")


def sdk_runs_notebooks():
    answer = notebook("a = 'x'", "a", "import sys\nprint(a)\nsys.stderr.write('e')", "1/0", "print(a)")
    assert answer.status == sdk.RunStatus.Success, answer
    assert answer.cells[1].display[-1]["text/plain"] == "'x'"
    assert (answer.cells[2].stdout, answer.cells[2].stderr) == ("x\n", "e")
    assert answer.cells[3].error[0]["ename"] == "ZeroDivisionError"
    assert answer.cells[4].stdout == "x\n"
    assert notebook("a").cells[0].error[0]["ename"] == "NameError"
    late = notebook("print(1)", "while True: pass", "print(2)", cell_timeout=0.5)
    assert late.status == sdk.RunStatus.Failed
    assert late.driver.status == sdk.CommandRunStatus.TimeLimitExceeded


def sdk_asks_many_at_once():
    codes = [[f"print({number})"] for number in range(200)]
    answers = sdk.run_concurrent(run, args=codes, concurrency=50)
    assert [answer.run_result.stdout for answer in answers] == [f"{number}\n" for number in range(200)]


def sdk_asks_asynchronously():
    request = sdk.RunCodeRequest(code="print(1)", language="python")

    async def both():
        return await asyncio.gather(*[sdk.run_code_async(request, endpoint=URL, max_attempts=1) for _ in range(8)])

    assert all(answer.run_result.stdout == "1\n" for answer in asyncio.run(both()))


def part_of(package, module):
    """One module of a package, without what the packages above it import: torch, ray and the like."""
    root = pathlib.Path(sys.argv[2])
    names = module.split(".")[:-1]
    for depth in range(len(names) + 1):
        name = ".".join([package, *names[:depth]])
        if name not in sys.modules:
            above = types.ModuleType(name)
            above.__path__ = [str(root.joinpath(*name.split(".")))]
            sys.modules[name] = above
    return importlib.import_module(f"{package}.{module}")


def verl_client():
    """verl's client of this service."""
    return part_of("verl", "utils.reward_score.sandbox_fusion")


def tinker_grades_programs():
    """tinker-cookbook's grader, on programs that double a number. It needs numpy and an alarm."""
    os.environ["SANDBOX_URL"] = URL + "/run_code"
    check = part_of("tinker_cookbook", "recipes.code_rl.code_grading").sandbox_check_correctness
    tests = [{"input": f"{n}\n", "output": f"{2 * n}\n", "testtype": "stdin"} for n in (3, 10)]

    async def grade(*generations):
        # Its client keeps one session, which belongs to one loop.
        graded = [await check(tests, generation, timeout=2) for generation in generations]
        return [(passed, details["run_result"]["stdout"]) for passed, details in graded]

    right, wrong, endless = asyncio.run(
        grade("print(2 * int(input()))", "print(3 * int(input()))", "while True:\n    pass")
    )
    assert right == (True, ""), right
    assert not wrong[0] and "Wrong Answer" in wrong[1], wrong
    assert not endless[0] and "Time Limit Exceeded" in endless[1], endless


def verl_check(code, cases, **more):
    check = verl_client().check_correctness
    return check(URL + "/run_code", cases, code, **more)


def verl_compares_what_is_printed():
    echo = "import sys\nprint(sys.stdin.read().upper(), end='')"
    results, metadata = verl_check(echo, {"inputs": ["a\n", "b"], "outputs": ["A", "x"]})
    assert results == [True, False], metadata
    assert [row["status"] for row in metadata] == ["success", "wrong_answer"]
    assert metadata[0]["stdout"] == "A\n"


def verl_tells_errors_from_time():
    results, metadata = verl_check("raise ValueError('x')", {"inputs": [""], "outputs": [""]})
    assert (results, metadata[0]["exit_code"]) == ([-2], 1), metadata
    sleeper = "import time\ntime.sleep(100)"
    results, metadata = verl_check(sleeper, {"inputs": [None], "outputs": ["x"]}, timeout=1)
    assert (results, metadata[0]["status"]) == ([-3], "timeout"), metadata


def verl_calls_functions_by_name():
    code = "class Solution:\n    def twice(self, xs: List[int], k: int):\n        return [x * k for x in xs]"
    cases = {"fn_name": "twice", "inputs": ["[1, 2]\n2", "[]\n5"], "outputs": ["[2, 4]", "[]"]}
    results, metadata = verl_check(code, cases, timeout=5)
    assert results == [True, True], metadata


def verl_runs_asserts():
    cases = {"inputs": ["", ""], "outputs": [None, None], "assert_case": ["assert f(1) == 2", "assert f(1) == 3"]}
    results, metadata = verl_check("def f(x): return x + 1", cases)
    assert results == [True, -2], metadata


def verl_scores_completions():
    score = verl_client().compute_score
    cases = {"inputs": ["1\n", "2\n", "3\n", "4\n"], "outputs": ["1", "4", "9", "17"]}
    said = "So:\n```python\nn = int(input())\nprint(n * n)\n```"
    value, metadata = score(URL + "/run_code", None, 1024, said, cases, continuous=True)
    assert value == 0.75, metadata


def verl_asks_a_hundred_at_once():
    code = "import sys, time\nn = int(sys.stdin.read())\nif n % 10 == 0: time.sleep(1000)\nprint(n)"
    cases = {"inputs": [str(n) for n in range(100)], "outputs": [str(n) for n in range(100)]}
    results, _ = verl_check(code, cases, timeout=5)
    assert results == [-3 if n % 10 == 0 else True for n in range(100)], results


CASES = [value for name, value in list(globals().items()) if name.startswith(("sdk_", "verl_", "tinker_")) and name not in
         ("verl_client", "verl_check")]
if run("import numpy").status != sdk.RunStatus.Success:
    CASES.remove(tinker_grades_programs)
    print("  left out: tinker grades programs: `cargo xtask science` builds the numpy that its grader imports")

failed = 0
for case in CASES:
    try:
        case()
        outcome = "passed"
    except Exception:
        failed += 1
        outcome = "FAILED"
        traceback.print_exc()
    print(f"  {case.__name__.replace('_', ' '):<52} {outcome}")
print(f"{len(CASES) - failed} of {len(CASES)} passed")
sys.exit(failed > 0)
