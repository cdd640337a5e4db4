"""OpenEnv's own clients against our server, and our training in environments of OpenEnv's own server.

`cargo xtask clients openenv` installs OpenEnv's package from PyPI and runs this with the program and a folder of plugins.
Each case is one promise of docs/openenv.md.
"""

import asyncio
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

PROGRAM, PLUGINS = sys.argv[1:]
OWN = pathlib.Path(__file__).parent
ROOT = OWN.parent.parent
SESSIONS = 1_000
# The same counter as in openenv_servers.py, as a Python file of ours.
COUNTER = '''
from mcp.server.fastmcp import FastMCP


class Counter:
    def __init__(self):
        self.count = 0

    def load_scenario(self, scenario: dict) -> None:
        self.count = scenario.get("count", 0)

    def save_scenario(self) -> dict:
        return {"count": self.count}


counter = Counter()
mcp = FastMCP(name="Counter")


@mcp.tool()
def load_scenario(scenario: dict) -> str:
    """Loads a state."""
    counter.load_scenario(scenario)
    return "loaded"


@mcp.tool()
def save_scenario() -> dict:
    """Saves the state."""
    return counter.save_scenario()


@mcp.tool()
def add(by: int) -> int:
    """Adds to the count, and returns it."""
    counter.count += by
    return counter.count
'''


def rows(count):
    with open(ROOT / "plugins/environments/tasks/train.jsonl") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count))]


def call(made):
    return {"type": "call_tool", "tool_name": made["name"], "arguments": made["arguments"]}


async def generic_client_plays_tasks_to_their_goals(url):
    for row in rows(10):
        async with GenericEnvClient(base_url=f"{url}/servers") as env:
            await env.reset(seed=1, **row["setup"])
            for made in row["reference"]["calls"]:
                result = await env.step(call(made))
                assert result.observation["error"] is None, result
            state = await env.state()
            assert state["state"] == row["reference"]["state"], state
            assert state["step_count"] == len(row["reference"]["calls"])


async def mistakes_are_told_and_end_nothing(url):
    async with GenericEnvClient(base_url=f"{url}/servers") as env:
        await env.reset(servers={"Gym": {}})
        wrong = await env.step({"type": "call_tool", "tool_name": "Gym-nothing", "arguments": {}})
        assert wrong.observation["error"]["error_type"] == "tool_not_found", wrong
        for bad in ({"type": "jump"}, {"type": "call_tool"}):
            try:
                await env.step(bad)
                raise AssertionError(f"{bad} was done")
            except RuntimeError as error:
                assert "VALIDATION_ERROR" in str(error), error
        found = await env.step({"type": "call_tool", "tool_name": "Gym-list_classes", "arguments": {}})
        assert found.observation["error"] is None and not found.done, found


async def tool_client_lists_and_calls(url):
    async with MCPToolClient(base_url=f"{url}/counter") as env:
        await env.reset(seed=7, servers={"Counter": {"count": 40}})
        assert [tool.name for tool in await env.list_tools()] == ["Counter-add"]
        assert await env.call_tool("Counter-add", by=2) in (42, "42")


async def tool_client_over_http_keeps_its_session(url):
    async with MCPToolClient(base_url=f"{url}/counter") as env:
        env.use_production_mode = True
        assert [tool.name for tool in await env.list_tools()] == ["Counter-add"]
        assert [await env.call_tool("Counter-add", by=2) for _ in range(2)] in ([2, 4], ["2", "4"])


async def a_thousand_sessions_at_once(url):
    began = time.monotonic()
    steps = await crowd(f"{url}/counter", {"servers": {"Counter": {}}}, "Counter-add", SESSIONS, 5)
    print(f"    {SESSIONS} sessions, {steps} steps in {time.monotonic() - began:.1f} s")


async def crowd(url, setup, tool, sessions, steps):
    """Opens sessions at once, and acts in all of them at once. Returns the number of steps."""
    ready, go = asyncio.Semaphore(64), asyncio.Event()
    open_now = 0

    async def one():
        nonlocal open_now
        env = GenericEnvClient(base_url=url)
        async with ready:
            await env.connect()
            await env.reset(**setup)
        open_now += 1
        if open_now == sessions:
            go.set()
        await go.wait()
        for number in range(steps):
            result = await env.step({"type": "call_tool", "tool_name": tool, "arguments": {"by": 1}})
            result = result.observation["result"]
            assert str(number + 1) in json.dumps(result), result
        await env.close()

    await asyncio.gather(*(one() for _ in range(sessions)))
    return sessions * steps


async def steps_beside_the_same_environment_in_python(url):
    with server("counting") as python:
        rate = {}
        for name, at, setup, tool in [
            ("rlf-host", f"{url}/counter", {"servers": {"Counter": {}}}, "Counter-add"),
            ("OpenEnv's server", python, {}, "add"),
        ]:
            async def play():
                async with GenericEnvClient(base_url=at) as env:
                    await env.reset(**setup)
                    began = time.monotonic()
                    for _ in range(300):
                        await env.step({"type": "call_tool", "tool_name": tool, "arguments": {"by": 1}})
                    return 300 / (time.monotonic() - began)

            rate[name] = sum(await asyncio.gather(*(play() for _ in range(8))))
        ours, theirs = rate.values()
        print(f"    8 clients: rlf-host {ours:.0f} steps/s, OpenEnv's server {theirs:.0f} steps/s, ratio {ours / theirs:.1f}")


async def trl_trains_in_an_environment_of_ours(url):
    script = [sys.executable, OWN / "openenv_trl.py", f"{url}/counter"]
    trained = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert trained.returncode == 0, trained.stdout[-3_000:]


class server:
    """An environment of openenv_servers.py."""

    def __init__(self, name):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen([sys.executable, OWN / "openenv_servers.py", name, str(port)])

    def __enter__(self):
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{self.url}/health")
                return self.url
            except OSError:
                time.sleep(0.1)
        raise AssertionError("OpenEnv's server does not answer")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def task(number, name, tool, arguments, setup, words):
    return {
        "id": f"{name}-{number}", "source": "openenv", "prompt": [{"role": "user", "content": words}],
        "environment": name, "setup": setup, "reference": {"calls": [{"name": tool, "arguments": arguments}]},
    }


async def environments_of_openenv_train_here(_):
    with server("guessing") as guessing, server("counting") as counting, tempfile.TemporaryDirectory() as folder:
        tasks = []
        for number in range(20):
            tasks.append(task(number, "guessing", "step", {"guess": number}, {"number": number}, f"The number is {number}."))
            tasks.append(task(number, "counting", "add", {"by": number}, {"goal": number}, f"Count to {number}."))
        pathlib.Path(folder, "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tasks))
        quickstart = (ROOT / "configs/quickstart.toml").read_text()
        shape = quickstart[quickstart.index("[model.init]"):].split("\n\n")[0]
        config = pathlib.Path(folder, "config.toml")
        config.write_text(f"""
output = "{folder}/run"

{shape}

[tokenizer.train]
vocab_size = 400

[dialogue]
answer = "final-turn"
max_turns = 3
max_tokens_per_turn = 64
context = 512

[tasks]
train = "tasks.jsonl"
validation = "tasks.jsonl"

[openenv.guessing]
url = "{guessing}"

[openenv.counting]
url = "{counting}"

[rewards]
success = "reward-verdict.success >= 1"

[[rewards.stack]]
plugin = "reward-verdict"
weights = {{ score = 1.0 }}

[sft]
steps = 150
batch_size = 16
optimizer.learning_rate = 5e-3
optimizer.warmup_steps = 5

[rl]
steps = 20
prompts_per_step = 8
group_size = 8

[eval]
tasks = 40
samples = 2
validation_tasks = 40
every = 20
""")
        trained = subprocess.run(
            [PROGRAM, "train", str(config), "--plugins", PLUGINS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert trained.returncode == 0, trained.stdout[-3_000:]
        steps = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
        steps = [step for step in steps if step["phase"] == "rl" and "reward" in step]
        first, last = (sum(step["reward"] for step in part) / 5 for part in (steps[:5], steps[-5:]))
        excluded = sum(step.get("excluded", 0) for step in steps)
        print(f"    mean reward of the first 5 steps {first:.2f}, of the last 5 {last:.2f}, excluded {excluded}")
        assert last > first and last > 0.3 and excluded == 0, trained.stdout[-3_000:]


CASES = [
    generic_client_plays_tasks_to_their_goals, mistakes_are_told_and_end_nothing, tool_client_lists_and_calls,
    tool_client_over_http_keeps_its_session, a_thousand_sessions_at_once, steps_beside_the_same_environment_in_python,
    environments_of_openenv_train_here, trl_trains_in_an_environment_of_ours,
]


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))
    with tempfile.TemporaryDirectory() as folder:
        counter = pathlib.Path(folder, "Counter.py")
        counter.write_text(COUNTER)
        config = pathlib.Path(folder, "serve.toml")
        config.write_text(
            f"[sandbox]\nsessions = {SESSIONS + 100}\n[serve]\nmax_sessions = {SESSIONS + 100}\nqueue_ms = 60_000\n"
            f'[plugins.servers]\nplugin = "python"\nenvironment.servers = "{ROOT}/plugins/environments"\n'
            f'[plugins.counter]\nplugin = "python"\nenvironment.servers = "{counter}"\n')
        command = [PROGRAM, "serve", str(config), "--listen", "127.0.0.1:0", "--plugins", PLUGINS]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = service.stdout.readline().split()[-1] + "/openenv"
            failed = 0
            for case in CASES:
                name = case.__name__.replace("_", " ")
                try:
                    asyncio.run(case(url))
                    print(f"  ok      {name}", flush=True)
                except Exception:
                    failed += 1
                    print(f"  FAILED  {name}\n{traceback.format_exc()}", flush=True)
        finally:
            service.kill()
    print(f"{len(CASES) - failed} of {len(CASES)} cases passed")
    sys.exit(failed > 0)


main()
