"""The process: threads, signals, forks, and the program that comes with the package."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import rlf_host
from rlf_host import Plugins, Sandbox


def run_python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)


def calculate(number):
    return Plugins(only=["calculator"]).call("calculate", {"expression": f"{number}+1"}).text


class Threads(unittest.TestCase):
    def test_sixteen_threads_get_their_own_answers(self):
        plugins = Plugins(only=["calculator"])
        wrong = []

        def work(thread):
            for number in range(100):
                text = plugins.call("calculate", {"expression": f"{thread}*1000+{number}"}).text
                if text != str(thread * 1000 + number):
                    wrong.append((thread, number, text))

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Forks(unittest.TestCase):
    def test_a_forked_child_is_refused_and_ends(self):
        code = """if True:
            import os, sys, rlf_host
            sandbox = rlf_host.Sandbox()
            session = sandbox.notebook()
            child = os.fork()
            if child == 0:
                for use in (rlf_host.Sandbox, lambda: sandbox.run("1"), lambda: session.run("1")):
                    try:
                        use()
                    except RuntimeError as error:
                        print("refused" if "forked" in str(error) else error, flush=True)
                sys.exit(7)
            print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print("parent", sandbox.run("print(1)").ended)
        """
        done = run_python(code)
        self.assertEqual(done.stdout, "refused\nrefused\nrefused\nchild 7\nparent ok\n", done.stderr)

    def test_a_child_that_is_forked_before_the_first_use_works(self):
        code = """if True:
            import os, sys, rlf_host
            child = os.fork()
            if child == 0:
                sys.exit(0 if rlf_host.Sandbox().run("print(1)").ok else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), rlf_host.Sandbox().run("print(1)").ok)
        """
        self.assertEqual(run_python(code).stdout, "0 True\n")

    def test_spawned_workers_work_beside_a_parent_that_uses_it(self):
        self.assertEqual(calculate(1), "2")
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            self.assertEqual(pool.map(calculate, range(4)), ["1", "2", "3", "4"])


class Signals(unittest.TestCase):
    def test_a_guest_that_traps_does_not_end_a_process_that_enables_faulthandler_later(self):
        code = """if True:
            import faulthandler, signal, rlf_host
            sandbox = rlf_host.Sandbox()
            faulthandler.disable()
            faulthandler.enable()
            print(sandbox.run("import os; os.abort()").ended)
            signal.signal(signal.SIGILL, signal.SIG_DFL)
            print(sandbox.run("import os; os.abort()").ended)
        """
        done = run_python(code)
        self.assertEqual((done.stdout, done.returncode), ("trap\ntrap\n", 0), done.stderr)


class Ends(unittest.TestCase):
    def test_ctrl_c_stops_a_waiting_call(self):
        # The other thread cannot run before this one waits without the interpreter's lock.
        code = """if True:
            import os, signal, sys, rlf_host
            sandbox = rlf_host.Sandbox()
            sys.setswitchinterval(1000)
            sandbox.submit("pass").add_done_callback(lambda _: os.kill(os.getpid(), signal.SIGINT))
            sandbox.run("while True: pass", seconds=600)
        """
        self.assertIn("KeyboardInterrupt", run_python(code).stderr)

    def test_ctrl_c_stops_a_compilation(self):
        code = """if True:
            import os, signal, sys, threading, rlf_host
            rlf_host._process.start()
            loading = threading.Event()
            def interrupt():
                loading.wait()
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt).start()
            sys.setswitchinterval(1000)
            loading.set()
            rlf_host.Sandbox()
        """
        with tempfile.TemporaryDirectory() as cache:
            done = run_python(code, env={**os.environ, "XDG_CACHE_HOME": cache})
        self.assertIn("KeyboardInterrupt", done.stderr)

    def test_a_process_that_used_asyncio_ends_well(self):
        code = """if True:
            import asyncio, rlf_host
            plugins = rlf_host.Plugins(only=["calculator"])
            async def play():
                for _ in range(20):
                    await asyncio.gather(*(plugins.call_async("calculate", {"expression": "1"}) for _ in range(16)))
            asyncio.run(play())
        """
        for _ in range(10):
            done = run_python(code)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_process_ends_while_other_threads_wait_for_programs(self):
        code = """if True:
            import threading, rlf_host
            sandbox = rlf_host.Sandbox()
            ran = threading.Event()
            def work():
                while True:
                    sandbox.run("print(1)")
                    ran.set()
            for _ in range(4):
                threading.Thread(target=work, daemon=True).start()
            ran.wait()
        """
        for _ in range(5):
            done = run_python(code)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_process_ends_while_programs_run(self):
        code = "import rlf_host; s = rlf_host.Sandbox(); f = [s.submit('while True: pass') for _ in range(20)]; print('end')"
        done = run_python(code)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("end\n", "", 0))

    def test_a_killed_worker_loses_only_its_own_calls(self):
        code = "import rlf_host; s = rlf_host.Sandbox(); print('ready', flush=True)\nwhile True: s.run('print(1)')"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        sandbox = Sandbox()
        futures = [sandbox.submit(f"print({number})") for number in range(100)]
        child.kill()
        child.communicate(timeout=60)
        self.assertEqual([future.result().stdout for future in futures], [f"{number}\n" for number in range(100)])
        self.assertTrue(Sandbox().run("print(1)").ok)


class Settings(unittest.TestCase):
    def test_programs_that_wait_for_memory_have_not_begun_their_deadline(self):
        code = """if True:
            import rlf_host
            rlf_host.configure(program_memory_budget_bytes=512 << 20)
            grants = {"python": {"programs": {"time_ms": 200, "deadline_ms": 2000}}}
            sandbox = rlf_host.Sandbox(plugins=rlf_host.Plugins(only=["python"], grants=grants))
            results = sandbox.run_many(["while True: pass"] * 30, seconds=0.2)
            print({(result.ended, result.fault) for result in results})
        """
        self.assertEqual(run_python(code).stdout, "{('timeout', 'model')}\n")

    def test_settings_are_made_before_the_first_use(self):
        code = """if True:
            import json, rlf_host
            rlf_host.configure(workers=0)
            try:
                rlf_host.Sandbox()
            except ValueError:
                rlf_host.configure(workers=3, programs=5)
            print(rlf_host.Sandbox().run("print(1)").ok)
            sizes = json.loads(rlf_host._native.describe())
            print(sizes["workers"], sizes["programs"]["places"])
        """
        self.assertEqual(run_python(code).stdout, "True\n3 5\n")
        Plugins(only=["calculator"])
        with self.assertRaisesRegex(RuntimeError, "runs already"):
            rlf_host.configure(workers=3)
        done = run_python("import rlf_host; rlf_host.configure(worker=3); rlf_host.Sandbox()")
        self.assertRegex(done.stderr.splitlines()[-1], "ValueError: sandbox: worker: unknown field `worker`")
        done = run_python("import rlf_host; rlf_host.configure(workers=0); rlf_host.Sandbox()")
        self.assertRegex(done.stderr.splitlines()[-1], "ValueError: sandbox.workers = 0")


class Program(unittest.TestCase):
    def test_the_program_finds_the_plugins_of_the_package(self):
        done = subprocess.run(
            [sys.executable, "-m", "rlf_host", "plugin", "call", "calculator", "calculate", '{"expression": "6*7"}'],
            capture_output=True,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=120,
        )
        self.assertEqual((done.stdout, done.returncode), ("42\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
