"""Environments and their sessions."""

import asyncio
import json
import unittest
from pathlib import Path

from rlf_host import Environment, SessionError

ENVIRONMENTS = Path(__file__).parents[3] / "plugins" / "environments"


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = Environment(ENVIRONMENTS / "Library.py")
        scenarios = json.loads((ENVIRONMENTS / "scenarios.json").read_text())
        cls.scenario = next(scenario for scenario in scenarios if scenario["id"] == "library-lend")

    def open(self):
        return self.library.open(self.scenario["task"], seed=self.scenario["seed"])

    def test_a_recorded_scenario_ends_in_its_recorded_state(self):
        with self.open() as session:
            for name, arguments in self.scenario["calls"]:
                session.call(name, arguments)
            self.assertEqual(session.state(), self.scenario["expect"])
            verdict = session.verify({"state": self.scenario["expect"]})
            self.assertEqual((verdict.success, verdict.score), (True, 1.0))
            wrong = session.verify({"state": self.scenario["task"]["servers"]})
            self.assertFalse(wrong.success)

    def test_sessions_are_independent_and_go_back_to_a_snapshot(self):
        first, *rest = self.scenario["calls"]
        with self.open() as one, self.open() as other:
            one.call(*first)
            snapshot = one.snapshot()
            before = one.state()
            for call in rest:
                one.call(*call)
            self.assertNotEqual(one.state(), before)
            self.assertEqual(other.state(), before)
            other.restore(snapshot)
            one.restore(snapshot)
            self.assertEqual(one.state(), before)
            with self.assertRaisesRegex(ValueError, "no snapshot"):
                one.restore(b"x")

    def test_every_call_has_the_hash_of_the_state(self):
        with self.open() as session:
            name, arguments = self.scenario["calls"][0]
            self.assertEqual(len(session.call(name, arguments).state_hash), 32)
            self.assertEqual(session.call("Library-steal", {}).ended, "invalid-arguments")

    def test_asyncio(self):
        async def play():
            session = await self.library.open_async(self.scenario["task"], seed=7)
            for name, arguments in self.scenario["calls"]:
                await session.call_async(name, arguments)
            verdict = await session.verify_async({"state": self.scenario["expect"]})
            return verdict.success

        async def play_all():
            return await asyncio.gather(*(play() for _ in range(8)))

        self.assertEqual(asyncio.run(play_all()), [True] * 8)

    def test_calls_run_in_the_order_in_which_they_were_asked_for(self):
        async def play():
            async with await self.library.open_async(self.scenario["task"], seed=7) as session:
                calls = [session.call_async(name, arguments) for name, arguments in self.scenario["calls"]]
                await asyncio.gather(*map(asyncio.ensure_future, calls))
                return await session.state_async()

        for _ in range(5):
            self.assertEqual(asyncio.run(play()), self.scenario["expect"])

    def test_a_cancelled_action_ends_the_session(self):
        async def play():
            session = await self.library.open_async(self.scenario["task"])
            calls = [asyncio.ensure_future(session.state_async()) for _ in range(200)]
            await asyncio.sleep(0)
            calls[100].cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            return session

        # The action may have ended before; what counts is that nothing hangs and the session says what it is.
        session = asyncio.run(play())
        try:
            session.state()
        except SessionError as error:
            self.assertIn("cancelled", str(error))

    def test_arguments_that_are_no_json_are_an_answer_to_the_model(self):
        with self.open() as session:
            result = session.call("Library-find_books", {"text": float("nan")})
            self.assertEqual((result.ended, result.fault), ("invalid-arguments", "model"))

    def test_mistakes_are_named(self):
        with self.assertRaisesRegex(LookupError, "no file or folder Nowhere"):
            Environment("Nowhere")
        with self.assertRaisesRegex(ValueError, "servers"):
            self.library.open({})
        session = self.open()
        session.close()
        with self.assertRaisesRegex(SessionError, "closed"):
            session.state()
        with self.open() as session, self.assertRaisesRegex(ValueError, "state"):
            session.verify({})


if __name__ == "__main__":
    unittest.main()
