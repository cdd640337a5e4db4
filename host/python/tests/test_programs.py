"""Programs and notebooks."""

import asyncio
import threading
import time
import unittest

from rlf_host import Program, Sandbox


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sandbox = Sandbox()

    def test_a_result_says_how_a_program_went(self):
        result = self.sandbox.run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
        self.assertEqual((result.ended, result.fault, result.exit_code), ("failed", "model", 3))
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))
        self.assertIsNone(result.exception)
        self.assertFalse(result.is_infrastructure)

    def test_an_uncaught_exception_is_named(self):
        result = self.sandbox.run("def f():\n    raise KeyError('k')\nf()")
        self.assertEqual((result.exception.kind, result.exception.message), ("KeyError", "'k'"))
        self.assertIn("line 2, in f", result.exception.traceback)
        self.assertEqual(self.sandbox.run("1 +").exception.kind, "SyntaxError")

    def test_a_program_gets_input_arguments_and_files_and_returns_files(self):
        program = Program(
            "import sys\nopen('out.bin', 'wb').write(open('in.bin', 'rb').read()[::-1])\nprint(input(), sys.argv[1])",
            stdin="hello",
            arguments=["main.py", "there"],
            files={"in.bin": b"\x00\xff"},
            fetch=["out.bin", "missing"],
        )
        result = self.sandbox.run(program)
        self.assertEqual((result.stdout, result.files), ("hello there\n", {"out.bin": b"\xff\x00"}))
        other = self.sandbox.run(program, stdin="bye")
        self.assertEqual(other.stdout, "bye there\n")

    def test_limits_stop_a_program_and_leave_the_next_one_alone(self):
        self.assertEqual(self.sandbox.run("while True: pass", seconds=0.1).ended, "timeout")
        greedy = self.sandbox.run("x = bytearray(200 << 20)", memory_bytes=100 << 20)
        self.assertEqual((greedy.ended, greedy.exception.kind), ("failed", "MemoryError"))
        long = self.sandbox.run("print('x' * 100_000)", output_bytes=1_000)
        self.assertGreater(long.stdout_omitted_bytes, 90_000)
        self.assertTrue(self.sandbox.run("print(1)").ok)

    def test_the_same_seed_gives_the_same_randomness(self):
        draw = "import random, os; print(random.random(), os.urandom(4))"
        one, same, other = self.sandbox.run_many([Program(draw, seed=seed) for seed in (1, 1, 2)])
        self.assertEqual(one.stdout, same.stdout)
        self.assertNotEqual(one.stdout, other.stdout)

    def test_many_programs_answer_in_order(self):
        results = self.sandbox.run_many(f"print({number})" for number in range(500))
        self.assertEqual([result.stdout for result in results], [f"{number}\n" for number in range(500)])

    def test_wrong_requests_are_named(self):
        with self.assertRaisesRegex(ValueError, "seconds = -1"):
            self.sandbox.run("1", seconds=-1)
        with self.assertRaisesRegex(ValueError, r"\.\."):
            self.sandbox.run("1", files={"../x": ""})
        with self.assertRaisesRegex(ValueError, "file_bytes"):
            self.sandbox.run("1", stdin=b"x" * (17 << 20))
        with self.assertRaises(TypeError):
            self.sandbox.run("1", wrong=1)
        with self.assertRaisesRegex(LookupError, "no interpreter runs `pyton`; `python` and `javascript` ship"):
            Sandbox("pyton")
        with self.assertRaises(TypeError):
            self.sandbox.run("1", seed=-1)

    def test_javascript(self):
        self.assertEqual(Sandbox("javascript").run("console.log(6 * 7)").stdout, "42\n")

    def test_other_threads_go_on_while_a_program_runs(self):
        beats = []
        stop = threading.Event()

        def beat():
            while not stop.is_set():
                beats.append(time.monotonic())
                time.sleep(0.01)

        thread = threading.Thread(target=beat)
        thread.start()
        self.sandbox.run("while True: pass", seconds=0.5)
        stop.set()
        thread.join()
        self.assertGreater(len(beats), 5)

    def test_asyncio_runs_programs_at_once_and_cancels_them(self):
        async def run():
            results = await asyncio.gather(*(self.sandbox.run_async(f"print({number})") for number in range(50)))
            self.assertEqual([result.stdout for result in results], [f"{number}\n" for number in range(50)])
            endless = asyncio.create_task(self.sandbox.run_async("while True: pass"))
            await asyncio.sleep(0.1)
            endless.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await endless
            with self.assertRaises(ValueError):
                await self.sandbox.run_async("1", files={"../x": ""})

        asyncio.run(run())

    def test_a_future_can_be_cancelled(self):
        future = self.sandbox.submit("while True: pass")
        self.assertTrue(future.cancel())
        self.assertTrue(self.sandbox.submit("print(1)").result(timeout=60).ok)


class Notebooks(unittest.TestCase):
    def test_cells_share_names_and_files(self):
        with Sandbox().notebook(files={"a.txt": "one"}) as notebook:
            notebook.run("text = open('a.txt').read()")
            cell = notebook.run("open('b.txt', 'w').write(text * 2)\ntext")
            self.assertEqual((cell.value, cell.ok), ("'one'", True))
            self.assertEqual(notebook.fetch("b.txt"), {"b.txt": b"oneone"})
            self.assertEqual(notebook.run("1 / 0").exception.kind, "ZeroDivisionError")
            self.assertEqual(notebook.run("text").value, "'one'")

    def test_a_stopped_cell_ends_the_notebook(self):
        with Sandbox().notebook() as notebook:
            self.assertEqual(notebook.run("while True: pass", seconds=0.1).ended, "timeout")
            self.assertEqual(notebook.run("1").ended, "unavailable")

    def test_a_closed_notebook_says_so(self):
        from rlf_host import SessionError

        notebook = Sandbox().notebook()
        notebook.close()
        with self.assertRaisesRegex(SessionError, "closed"):
            notebook.run("1")


if __name__ == "__main__":
    unittest.main()
