"""The one session of this process image, and the functions that the host calls."""

import json
import linecache
import random

from mcp.server.fastmcp.exceptions import out_of_memory

from . import snapshots
from .answers import EXHAUSTED, INTERNAL, INVALID, NOT_FOUND, Refused, canonical, clean, decoded, described, encoded, error
from .comparison import difference
from .functions import functions_of
from .loading import executed, unloaded


# The host's text when a user played by a model has left.
STOP = "###STOP###"
_KEYS = frozenset(("servers", "tools", "functions", "scoping", "user", "instruction"))


class Session:
    """A task under way. `loaded` are all servers of the image, `servers` those that the task names."""

    def __init__(self, task, seed, loaded):
        self.task, self.seed, self.loaded = task, seed, loaded
        unknown = sorted(set(task) - _KEYS)
        if unknown:
            raise Refused(INVALID, f"there is no key {unknown[0]!r} in a task; there are: {', '.join(sorted(_KEYS))}")
        if task.get("user") not in (None, "solo", "model"):
            raise Refused(INVALID, "user has to be 'solo' or 'model'")
        servers = task.get("servers") or {}
        if not isinstance(servers, dict):
            raise Refused(INVALID, "servers has to be an object of names and scenarios")
        for name, scenario in servers.items():
            if name not in loaded:
                known = ", ".join(sorted(loaded)) or "none"
                raise Refused(NOT_FOUND, f"there is no server {name!r}; there are: {known}")
            if scenario is not None and not isinstance(scenario, dict):
                raise Refused(INVALID, f"the scenario of {name!r} has to be an object or null")
        self.servers = servers
        self.functions = functions_of(task)
        self.tools = self.offered(task.get("tools"))

    def offered(self, allowed):
        """Tool name to its encoded description, in the order of the files; only the allowed ones if the task says so."""
        found = {}
        for name in self.servers:
            tools = self.loaded[name].encoded
            if both := sorted(found.keys() & tools.keys()):
                raise Refused(INVALID, f"two servers of the task have a tool {both[0]!r}")
            found.update(tools)
        if both := sorted(found.keys() & self.functions.keys()):
            raise Refused(INVALID, f"a server and a function of the task have the name {both[0]!r}")
        found.update((name, encoded(function.tool)) for name, function in self.functions.items())
        if allowed is None:
            return found
        if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
            raise Refused(INVALID, "tools has to be a list of names")
        unknown = sorted(set(allowed) - found.keys())
        if unknown:
            raise Refused(NOT_FOUND, f"the task allows tools that its servers do not have: {', '.join(unknown)}")
        return {name: text for name, text in found.items() if name in set(allowed)}

    def begin(self):
        """Puts every server into its scenario. Returns the texts that the model begins with."""
        said = []
        for name, scenario in self.servers.items():
            try:
                text = self.loaded[name].begin(scenario)
                if text is not None:
                    said.append(clean(text))
            except Refused:
                raise
            except BaseException as fault:
                if out_of_memory(fault):
                    raise
                raise Refused(INVALID, f"{name!r} could not be put into the task's scenario: {described(fault)}") from None
        return said

    def call(self, name, arguments):
        """`(text, failed)`."""
        if name not in self.tools:
            raise Refused(NOT_FOUND, f"there is no tool {name!r}")
        if name in self.functions:
            return self.functions[name].call(arguments)
        # A server's own name may contain a dash.
        server = next(known for known in self.servers if name in self.loaded[known].tools)
        return self.loaded[server].call(name, arguments)

    def state(self):
        found = {}
        for name in self.servers:
            try:
                found[name] = self.loaded[name].state()
            except BaseException as fault:
                if out_of_memory(fault):
                    raise
                raise Refused(INTERNAL, f"the state of {name!r} cannot be read: {described(fault)}") from None
        return found

    def rewards(self):
        """The rewards of the servers that have `get_reward`, by name."""
        found = {name: self.loaded[name].reward() for name in self.servers}
        return {name: reward for name, reward in found.items() if reward is not None}


_SERVERS = {}
_SCENARIOS = []
_SESSION = None


def answered(function):
    """Makes what a function refuses, or fails with, an answer."""

    def answering(*arguments):
        try:
            return function(*arguments)
        except Refused as refused:
            return error(refused.kind, str(refused))
        except BaseException as fault:
            return error(EXHAUSTED if out_of_memory(fault) else INTERNAL, described(fault))

    answering.__name__, answering.__doc__ = function.__name__, function.__doc__
    return answering


def current():
    if _SESSION is None:
        raise Refused(INVALID, "no session is open")
    return _SESSION


@answered
def load(sources_json):
    """Executes the files of tools. Answers the servers with their tools' names, or where which file failed."""
    sources = decoded(sources_json, "what is loaded")
    servers = sources.get("servers") or {}
    if not isinstance(servers, dict):
        raise Refused(INVALID, "servers has to be an object of names and sources")
    made = {}
    # By name, so that neither modules nor hashes depend on the order in which files were found.
    for name in sorted(servers):
        about = servers[name]
        if not isinstance(about, dict) or not isinstance(about.get("source"), str):
            raise Refused(INVALID, f"servers.{name} has to be an object with the text source")
        random.seed(0)
        made[name] = executed(name, about["source"], about.get("file") or f"{name}.py")
    _SERVERS.update(made)
    given = sources.get("scenarios")
    if given is not None:
        if not isinstance(given, list):
            raise Refused(INVALID, "scenarios has to be a list")
        _SCENARIOS[:] = given
    return encoded({"servers": {name: list(server.tools) for name, server in made.items()}})


def forget():
    """Makes this the package that has loaded nothing."""
    global _SESSION
    if _SESSION is not None:
        for function in _SESSION.functions.values():
            linecache.cache.pop(function.file, None)
    _SESSION = None
    for server in _SERVERS.values():
        unloaded(server)
    _SERVERS.clear()
    _SCENARIOS.clear()
    random.seed(0)


@answered
def open(task_json, seed):
    """Begins the session. Answers its tools and the messages it begins with."""
    global _SESSION
    session = Session(decoded(task_json, "the task"), seed, _SERVERS)
    random.seed(seed)
    messages = [{"role": "user", "content": text} for text in session.begin()]
    _SESSION = session
    return started(session, messages)


@answered
def call(name, arguments_json):
    """Calls a tool. What the tool does wrong is an observation; errors are a tool that is not there, and one that has used up
    the memory: what it did until then is not to count."""
    session = current()
    if name not in session.tools:
        raise Refused(NOT_FOUND, f"there is no tool {name!r}")
    try:
        arguments = decoded(arguments_json, "the arguments") if arguments_json.strip() else {}
    except Refused as refused:
        return encoded({"text": str(refused), "failed": True})
    text, failed = session.call(name, arguments)
    return encoded({"text": clean(text), "failed": failed})


@answered
def say(text):
    """What the model says to a user who is not there ends the episode. One whom another model plays ends it by leaving."""
    is_there = current().task.get("user") == "model"
    return encoded({"terminated": not is_there or text.strip() == STOP})


@answered
def state():
    """The canonical text of all servers' states."""
    try:
        return canonical(current().state())
    except ValueError as fault:
        raise Refused(INTERNAL, f"the state has no canonical JSON: {fault}") from None


@answered
def snapshot():
    """The session as a text."""
    return encoded(snapshots.taken(current()))


@answered
def restore(text):
    """Continues a session from a snapshot, in an image with the same files."""
    global _SESSION
    given = decoded(text, "the snapshot")
    if not isinstance(given.get("task"), dict):
        raise Refused(INVALID, "the snapshot has no task")
    session = Session(given["task"], given.get("seed"), _SERVERS)
    snapshots.put_back(session, given)
    _SESSION = session
    return started(session, [])


def started(session, messages):
    """The tools of a session, which are encoded already, and its messages."""
    return '{"tools":[' + ",".join(session.tools.values()) + '],"messages":' + encoded(messages) + "}"


@answered
def verify(answer, reference_json):
    """The share of the reference's servers whose state is the reference's. Without a state in it, the mean of the servers'
    rewards. Changes nothing, unless `get_reward` changes what cannot be copied."""
    reference = decoded(reference_json, "the reference")
    wanted = reference.get("state")
    before = random.getstate()
    try:
        rewards = current().rewards() if wanted is None else {}
        found = json.loads(canonical(current().state()))
    finally:
        random.setstate(before)
    if rewards:
        score = sum(rewards.values()) / len(rewards)
        reason = ", ".join(f"get_reward of {name}: {reward:g}" for name, reward in rewards.items())
        return encoded({"success": score == 1, "score": score, "reason": reason})
    if not isinstance(wanted, dict) or not wanted:
        raise Refused(INVALID, 'the reference has to have a "state" of at least one server')
    faults = []
    for name in sorted(wanted):
        fault = f"server {name} is not part of the task" if name not in found else difference(found[name], wanted[name])
        if fault:
            faults.append(fault if name not in found else f"{name}: {fault}")
    score = (len(wanted) - len(faults)) / len(wanted)
    reason = "; ".join(faults) or "all states are as they should be"
    return encoded({"success": not faults, "score": score, "reason": reason})


@answered
def scenarios():
    """The scenarios that the environment is checked by, as they were loaded."""
    return encoded(_SCENARIOS)
