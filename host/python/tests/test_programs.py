"""Programs and notebooks."""

import asyncio
import concurrent.futures
import threading
import time
import unittest

from rlf_host import Plugins, Program, Sandbox, SessionError, Unavailable


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
        with self.assertRaisesRegex(LookupError, "no interpreter runs `pyton`: .* did you mean `python`"):
            Sandbox("pyton")
        with self.assertRaisesRegex(ValueError, "seed = -1"):
            self.sandbox.run("1", seed=-1)
        with self.assertRaisesRegex(ValueError, "memory_bytes = 0"):
            self.sandbox.run("1", memory_bytes=0)
        with self.assertRaisesRegex(ValueError, "the interpreter alone starts with"):
            self.sandbox.run("1", memory_bytes=1_000_000)
        with self.assertRaisesRegex(ValueError, "memory_bytes = 8589934592: the sandbox allows"):
            self.sandbox.run("1", memory_bytes=8 << 30)
        for wrong in ({"stdin": 5}, {"arguments": "abc"}, {"fetch": "a"}, {"files": {"a": 5}}, {"seed": 1.5}):
            with self.assertRaises(TypeError, msg=wrong):
                self.sandbox.run("1", **wrong)
        with self.assertRaises(TypeError):
            self.sandbox.run_many("print(1)")

    def test_limits_may_be_larger_than_the_defaults(self):
        result = self.sandbox.run("import time; time.sleep(15); print('awake')", seconds=30)
        self.assertEqual(result.stdout, "awake\n")
        result = self.sandbox.run("print(len(bytearray(300_000_000)))", memory_bytes=400 << 20)
        self.assertEqual(result.stdout, "300000000\n")

    def test_files_have_the_limit_that_a_program_names(self):
        write = "with open('a', 'wb') as file: file.write(b'x' * 100_000)"
        result = self.sandbox.run(write, file_bytes=10_000)
        self.assertEqual((result.ended, result.exception.kind), ("failed", "OSError"))
        # The fast build of the interpreter keeps files itself, and refuses without the host.
        if result.files_refused is not None:
            self.assertIn("file_bytes", result.files_refused)
        self.assertEqual(len(self.sandbox.run(write, fetch=["a", "a"]).files["a"]), 100_000)

    def test_output_is_exactly_what_was_printed(self):
        result = self.sandbox.run(r"import sys; sys.stdout.write('a\r\nb\0\x1b[1m')")
        self.assertEqual(result.stdout, "a\r\nb\0\x1b[1m")
        self.assertEqual(self.sandbox.run(r"import sys; sys.stdout.buffer.write(b'\xff')").stdout, "\ufffd")

    def test_exit_codes_are_those_of_a_process(self):
        results = self.sandbox.run_many(f"import sys; sys.exit({code})" for code in (0, 256, -1, 255))
        self.assertEqual([result.exit_code for result in results], [0, 0, 255, 255])

    def test_text_without_utf_8_runs(self):
        self.assertEqual(self.sandbox.run("print('\ud83d')").stdout, "\ufffd\n")

    def test_an_invalid_program_cancels_those_before_it(self):
        began = time.monotonic()
        with self.assertRaises(ValueError):
            self.sandbox.run_many([*["while True: pass"] * 20, Program("1", seconds=-1)])
        self.assertLess(time.monotonic() - began, 60)
        self.assertTrue(self.sandbox.run("print(1)").ok)

    def test_javascript(self):
        self.assertEqual(Sandbox("javascript").run("console.log(6 * 7)").stdout, "42\n")

    def test_other_threads_go_on_while_a_program_runs(self):
        beats = 0
        stop = threading.Event()

        def beat():
            nonlocal beats
            while not stop.is_set():
                beats += 1

        thread = threading.Thread(target=beat)
        thread.start()
        before = beats
        self.sandbox.run("while True: pass", seconds=0.5)
        after = beats
        stop.set()
        thread.join()
        self.assertGreater(after - before, 1000)

    def test_asyncio_runs_programs_at_once_and_cancels_them(self):
        async def run():
            results = await asyncio.gather(*(self.sandbox.run_async(f"print({number})") for number in range(50)))
            self.assertEqual([result.stdout for result in results], [f"{number}\n" for number in range(50)])
            endless = asyncio.create_task(self.sandbox.run_async("while True: pass"))
            await asyncio.sleep(0)
            endless.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await endless
            with self.assertRaises(ValueError):
                await self.sandbox.run_async("1", files={"../x": ""})

        asyncio.run(run())

    def test_a_future_can_be_cancelled(self):
        future = self.sandbox.submit("while True: pass", seconds=600)
        self.assertTrue(future.cancel())
        done, _ = concurrent.futures.wait([future], timeout=60)
        self.assertEqual(done, {future})
        self.assertTrue(self.sandbox.submit("print(1)").result(timeout=60).ok)

    def test_a_callback_of_a_future_may_run_programs_itself(self):
        inner = []
        called = threading.Event()

        def callback(_):
            inner.append(self.sandbox.run("print(2)").stdout)
            called.set()

        self.sandbox.submit("print(1)").add_done_callback(callback)
        self.assertTrue(called.wait(60))
        self.assertEqual(inner[0], "2\n")


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
            for _ in range(2):
                with self.assertRaisesRegex(SessionError, "a cell was stopped: timeout"):
                    notebook.run("1")

    def test_cells_run_in_the_order_in_which_they_were_asked_for(self):
        async def play():
            async with await Sandbox().notebook_async() as notebook:
                await notebook.run_async("seen = []")
                cells = [asyncio.ensure_future(notebook.run_async(f"seen.append({n})")) for n in range(30)]
                await asyncio.gather(*cells)
                return (await notebook.run_async("seen")).value

        self.assertEqual(asyncio.run(play()), str(list(range(30))))

    def test_a_cancelled_cell_ends_the_notebook(self):
        async def play():
            notebook = await Sandbox().notebook_async()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(notebook.run_async("while True: pass", seconds=600), 0.2)
            with self.assertRaisesRegex(SessionError, "cancelled"):
                await notebook.run_async("1")

        asyncio.run(play())

    def test_notebooks_beyond_the_memory_for_programs_are_refused_with_the_reason(self):
        sandbox = Sandbox()
        notebooks = []
        try:
            with self.assertRaisesRegex(Unavailable, "open notebooks have"):
                for _ in range(10_000):
                    notebooks.append(sandbox.notebook(memory_bytes=512 << 20))
            with self.assertRaisesRegex(Unavailable, "open notebooks have"):
                sandbox.run("print(1)", memory_bytes=512 << 20)
        finally:
            for notebook in notebooks:
                notebook.close()
        self.assertTrue(sandbox.run("print(1)").ok)

    def test_a_closed_notebook_says_so(self):
        notebook = Sandbox().notebook()
        notebook.close()
        with self.assertRaisesRegex(SessionError, "closed"):
            notebook.run("1")


if __name__ == "__main__":
    unittest.main()
