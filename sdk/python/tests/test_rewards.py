"""Rewards: what they take, what they return, and what excludes a trajectory."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import rlf  # noqa: E402
from rlf import testing  # noqa: E402

class Rewards(unittest.TestCase):
    def setUp(self):
        testing.forget()

    def test_a_reward_takes_what_it_names_and_returns_a_number_or_terms(self):
        @rlf.reward
        def right(task: rlf.Task, trajectory: rlf.Trajectory) -> float:
            return float(trajectory.answer in task.accepted_answers())

        @rlf.reward
        def effort(trajectory, grading):
            return rlf.Terms(calls=len(trajectory.calls())).at_event(0, "first", 1).metric("step", grading.step)

        task = testing.task({"answer": "3"})
        tried = testing.trajectory().called("add", {"a": 1}, "3").answered("3")
        self.assertEqual(testing.grade(task, tried, step=4), {"right": 1.0, "calls": 1})
        self.assertEqual(testing.grade(task, testing.trajectory().answered("4"))["right"], 0.0)

    def test_what_a_log_or_an_event_cannot_be_excludes_one_trajectory(self):
        scores = {
            "good": rlf.Terms(a=1.0),
            "nan": rlf.Terms(a=1.0).metric("m", float("nan")),
            "text": rlf.Terms(a=1.0).metric("m", "x"),
            "before": rlf.Terms(a=1.0).at_event(-1, "b", 1.0),
            "half": rlf.Terms(a=1.0).at_event(0.5, "b", 1.0),
        }
        rlf.reward(lambda trajectory: scores[trajectory.answer], name="mixed")
        group = [testing.trajectory().answered(answer) for answer in scores]
        good, *excluded = rlf.rewards.grade(testing.task("a"), group, rlf.Grading())
        self.assertEqual(good.terms, {"a": 1.0})
        self.assertEqual([type(score) for score in excluded], [ValueError] * 4)
        self.assertIn("the metric 'm' is nan", str(excluded[0]))
        self.assertIn("the event -1; events are counted from 0", str(excluded[2]))

    def test_a_group_is_graded_at_once(self):
        @rlf.reward
        def shortest(group: list[rlf.Trajectory]) -> list[float]:
            lengths = [len(one.turns()) for one in group]
            return [float(length == min(lengths)) for length in lengths]

        short, long = testing.trajectory().answered("a"), testing.trajectory().said("hm").answered("a")
        self.assertEqual(testing.grade(testing.task("a"), short, long), [{"shortest": 1.0}, {"shortest": 0.0}])

    def test_terms_of_two_rewards_have_different_names(self):
        rlf.reward(lambda trajectory: {"x": 1}, name="first")
        rlf.reward(lambda trajectory: {"x": 2}, name="second")
        with self.assertRaisesRegex(ValueError, "two rewards give the term 'x'"):
            testing.grade(testing.task("a"), testing.trajectory().answered("a"))

    def test_a_parameter_that_nothing_gives_is_refused(self):
        with self.assertRaisesRegex(rlf.InvalidPlugin, "no 'completion' to give"):

            @rlf.reward
            def score(completion):
                return 1


if __name__ == "__main__":
    unittest.main()
