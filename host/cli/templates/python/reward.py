"""Whether the answer is right, and how many calls it took."""

import rlf


@rlf.reward
def NAME(task: rlf.Task, trajectory: rlf.Trajectory) -> dict:
    # Each key is a term. The configuration weighs it: weights = { right = 1.0, brief = 0.1 }.
    answer = (trajectory.answer or "").strip().lower()
    accepted = [text.strip().lower() for text in task.accepted_answers()]
    return {
        "right": answer in accepted,
        "brief": 1 / (1 + len(trajectory.calls())),
    }
