"""`@rlf.reward`: a function that measures trajectories."""

import asyncio
import dataclasses
import inspect
import math

from .errors import InvalidPlugin
from .schemas import check_function, parameters
from .tools import awaited
from .trajectories import Grading, Task, Trajectory

_rewards = {}
_TAKES = {"task": "task", "trajectory": "trajectory", "group": "group", "trajectories": "group", "grading": "grading"}
_TYPES = {Task: "task", Trajectory: "trajectory", list[Trajectory]: "group", Grading: "grading"}


class Terms:
    """Named terms of a score, credit for single events, and numbers for the logs.

    The configuration refers to a term as `PLUGIN.TERM`, and weighs it there.
    """

    def __init__(self, /, **terms):
        self.terms, self.per_event, self.metrics = dict(terms), [], {}

    def at_event(self, event, name, value):
        """Credits one event, by its index in `Trajectory.events`."""
        self.per_event.append((event, name, value))
        return self

    def metric(self, name, value):
        """Adds a number for the trainer's logs that is not part of the reward."""
        self.metrics[name] = value
        return self


@dataclasses.dataclass(frozen=True)
class Reward:
    """A function that measures trajectories."""

    name: str
    function: object
    takes: dict
    """What each parameter receives: `task`, `trajectory`, `group` or `grading`."""

    def is_of_groups(self):
        """Whether one call grades a whole group."""
        return "group" in self.takes.values()

    def grade(self, **given):
        """What the function returns for what it takes of `task`, `trajectory` or `group`, and `grading`."""
        result = self.function(**{name: given[what] for name, what in self.takes.items()})
        if inspect.isawaitable(result):
            result = asyncio.run(awaited(result))
        return result

    def terms(self, result):
        """The terms of what the function returned for one trajectory: a number has the function's name."""
        if isinstance(result, Terms):
            return result
        if isinstance(result, dict):
            return Terms(**result)
        if isinstance(result, (bool, int, float)):
            return Terms(**{self.name: result})
        raise TypeError(f"{self.name} returned {type(result).__name__}; return a number, a dictionary of numbers or rlf.Terms")


def reward(function=None, *, name=None):
    """Makes a function a reward. The function stays what it is, so a test can call it.

    Its parameters are `task`, `trajectory` and `grading`, each by its name or its type, and only those that it needs.
    With `group: list[rlf.Trajectory]` in place of a trajectory, it grades all trajectories of a task at once and returns
    a list.

    For one trajectory it returns a number, which is a term with the function's name; a dictionary of terms; or
    `rlf.Terms`. If it raises, the trajectory is excluded from its group: it is not scored 0.
    """

    def register(function):
        check_function("reward", function)
        takes = {}
        for parameter in parameters(function):
            what = _TYPES.get(parameter.annotation) if _hashable(parameter.annotation) else None
            what = what or _TAKES.get(parameter.name)
            if what is None:
                known = "task, trajectory, group or grading"
                raise InvalidPlugin(f"{function.__name__}: a reward has no {parameter.name!r} to give; name it {known}")
            takes[parameter.name] = what
        if {"trajectory", "group"} <= set(takes.values()):
            raise InvalidPlugin(f"{function.__name__}: take a trajectory or a group, not both")
        made = Reward(name or function.__name__, function, takes)
        if made.name in _rewards:
            raise InvalidPlugin(f"there are two rewards named {made.name!r}; give one another with @rlf.reward(name=..)")
        _rewards[made.name] = made
        return function

    return register if function is None else register(function)


def _hashable(annotation):
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def grade(task, group, grading):
    """Grades a group by all rewards: for each trajectory its `Terms`, or the exception that excludes it."""
    scores = [Terms() for _ in group]
    for reward in _rewards.values():
        if reward.is_of_groups():
            try:
                results = list(reward.grade(task=task, group=group, grading=grading))
                if len(results) != len(group):
                    raise ValueError(f"{reward.name} returned {len(results)} scores for {len(group)} trajectories")
            except Exception as error:
                results = [error] * len(group)
        else:
            results = [_attempt(reward, task=task, trajectory=one, grading=grading) for one in group]
        scores = [_sum(reward, score, result) for score, result in zip(scores, results)]
    return scores


def _attempt(reward, **given):
    try:
        return reward.grade(**given)
    except Exception as error:
        return error


def _sum(reward, score, result):
    """The terms so far, and those of one more reward."""
    if isinstance(score, Exception) or isinstance(result, Exception):
        return score if isinstance(score, Exception) else result
    try:
        more = reward.terms(result)
        for name, value in [*more.terms.items(), *((name, value) for _, name, value in more.per_event)]:
            if not isinstance(value, (bool, int, float)) or not math.isfinite(value):
                raise ValueError(f"{reward.name}: the term {name!r} is {value!r}, which is not a finite number")
        for name, value in more.metrics.items():
            if not isinstance(value, (bool, int, float)) or not math.isfinite(value):
                raise ValueError(f"{reward.name}: the metric {name!r} is {value!r}, which is not a finite number")
        for event, name, _ in more.per_event:
            if type(event) is not int or event < 0:
                raise ValueError(f"{reward.name}: the term {name!r} names the event {event!r}; events are counted from 0")
        if twice := sorted(score.terms.keys() & more.terms.keys()):
            raise ValueError(f"two rewards give the term {twice[0]!r}")
    except Exception as error:
        return error
    score.terms.update(more.terms)
    score.per_event.extend(more.per_event)
    score.metrics.update(more.metrics)
    return score


def registered():
    """The rewards that were made so far, by name."""
    return _rewards
