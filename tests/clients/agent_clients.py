"""Trains by agents that use published packages, unmodified, and by our own loop: the metrics have to be the same.

Arguments: the program `rlf-host`, and a folder of plugins. Each agent leads all trajectories of a short run, in training
and in evaluations. The run fetches no settings from the packages: they get a base URL and a key.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import agents
import anthropic
import openai
from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_tracing_disabled

set_tracing_disabled(True)
PROGRAM, PLUGINS = sys.argv[1:3]
CONFIG = os.path.join(os.path.dirname(__file__), "../../configs/quickstart.toml")
# Just long enough that the policy makes calls.
SETTINGS = {
    "sft.steps": 60, "sft.batch_size": 16, "sft.optimizer.warmup_steps": 5, "sft.optimizer.learning_rate": 5e-3,
    "rl.steps": 4, "rl.prompts_per_step": 4, "rl.group_size": 8, "rl.refill": 0, "tasks.facts.generated": 300,
    "eval.tasks": 8, "eval.samples": 2, "eval.validation_tasks": 2, "eval.every": 2, "checkpoint.trajectories_every": 1,
    "tasks.facts.sft": "{lookup = 1.0}", "tasks.facts.rl": "{lookup = 1.0}",
    "tasks.facts.eval": "{lookup = 1.0, chain = 1.0}",
}
# Each of these differs between two runs that are otherwise the same.
TIMES = ("elapsed_s", "rollout_s", "train_s", "step_s", "tokens_per_s", "wait_share", "busy_share")


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def call(trajectory, name, call_id, arguments):
    done = post(f"{trajectory['url']}/tools/{name}", {"id": call_id, "arguments": arguments})
    return done["content"]


def is_limit(error):
    """A limit of the trajectory ends it, and nothing is wrong."""
    return any(code in str(error) for code in ("max_turns", "dialogue.max_turns", "dialogue.context"))


def with_openai(trajectory, stream=False):
    client = openai.OpenAI(base_url=trajectory["openai_base_url"], api_key=trajectory["api_key"])
    messages, tools = trajectory["task"]["messages"], trajectory["task"]["tools"]
    while True:
        if stream:
            try:
                with client.chat.completions.stream(model="policy", messages=messages, tools=tools) as events:
                    said = events.get_final_completion().choices[0].message
            except openai.LengthFinishReasonError:
                return
        else:
            said = client.chat.completions.create(model="policy", messages=messages, tools=tools).choices[0].message
        if not said.tool_calls:
            return
        results = [
            {"role": "tool", "tool_call_id": made.id,
             "content": call(trajectory, made.function.name, made.id, made.function.arguments)}
            for made in said.tool_calls
        ]
        messages = messages + [said, *results]


def with_anthropic(trajectory, stream=False):
    client = anthropic.Anthropic(base_url=trajectory["anthropic_base_url"], api_key=trajectory["api_key"])
    given = trajectory["task"]["messages"]
    system = "".join(message["content"] for message in given if message["role"] == "system")
    messages = [message for message in given if message["role"] != "system"]
    tools = [
        {"name": tool["function"]["name"], "description": tool["function"]["description"],
         "input_schema": tool["function"]["parameters"]}
        for tool in trajectory["task"]["tools"]
    ]
    asked = {"model": "policy", "max_tokens": 4096, "tools": tools, **({"system": system} if system else {})}
    while True:
        if stream:
            with client.messages.stream(messages=messages, **asked) as events:
                said = events.get_final_message()
        else:
            said = client.messages.create(messages=messages, **asked)
        if said.stop_reason != "tool_use":
            return
        results = [
            {"type": "tool_result", "tool_use_id": block.id,
             "content": call(trajectory, block.name, block.id, block.input)}
            for block in said.content if block.type == "tool_use"
        ]
        messages = messages + [
            {"role": "assistant", "content": said.content}, {"role": "user", "content": results}
        ]


def with_openai_agents(trajectory):
    asyncio.run(run_openai_agents(trajectory))


async def run_openai_agents(trajectory):
    def tool(definition):
        async def invoke(context, arguments):
            return await asyncio.to_thread(
                call, trajectory, definition["name"], context.tool_call_id, arguments
            )

        return FunctionTool(
            name=definition["name"], description=definition["description"],
            params_json_schema=definition["parameters"], on_invoke_tool=invoke, strict_json_schema=False,
        )

    given = trajectory["task"]["messages"]
    system = "".join(message["content"] for message in given if message["role"] == "system")
    asked = [message for message in given if message["role"] != "system"]
    async with openai.AsyncOpenAI(
        base_url=trajectory["openai_base_url"], api_key=trajectory["api_key"]
    ) as client:
        agent = Agent(
            name="policy", instructions=system or None,
            tools=[tool(one["function"]) for one in trajectory["task"]["tools"]],
            model=OpenAIChatCompletionsModel(model="policy", openai_client=client),
        )
        await Runner.run(agent, asked, max_turns=100)


AGENTS = {
    f"openai {openai.__version__}": with_openai,
    f"openai {openai.__version__}, streamed": lambda trajectory: with_openai(trajectory, stream=True),
    f"anthropic {anthropic.__version__}": with_anthropic,
    f"anthropic {anthropic.__version__}, streamed": lambda trajectory: with_anthropic(trajectory, stream=True),
    f"openai-agents {agents.__version__}": with_openai_agents,
}


def lead(base, agent, failures, over):
    """Fetches tasks until the run is over, and leads each trajectory."""
    while not over.is_set():
        try:
            trajectory = post(f"{base}/agents/next", {})
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
            continue
        if trajectory is None:
            continue
        report = {}
        try:
            agent(trajectory)
        except Exception as error:  # Whatever it is, the run has to learn of it.
            if not is_limit(error):
                failures.append(error)
                report = {"error": repr(error)}
        post(f"{trajectory['url']}/finish", report)


def train(folder, agent=None):
    """Trains, and returns the metrics without times."""
    settings = dict(SETTINGS)
    workers, over, failures = None, threading.Event(), []
    if agent:
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = "127.0.0.1:%d" % free.getsockname()[1]
        settings["agent.listen"] = f"'{address}'"
        workers = ThreadPoolExecutor(8)
        for _ in range(8):
            workers.submit(lead, f"http://{address}", agent, failures, over)
    command = [PROGRAM, "train", CONFIG, "--plugins", PLUGINS, "--run", folder]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    ended = subprocess.run(command, capture_output=True, text=True)
    over.set()
    if workers:
        workers.shutdown()
    if failures:
        raise failures[0]
    if ended.returncode:
        raise RuntimeError(ended.stderr[-2000:])
    with open(os.path.join(folder, "metrics.jsonl")) as lines:
        rows = [json.loads(line) for line in lines]
    return [
        {key: value for key, value in row.items() if not any(part in key for part in TIMES)} for row in rows
    ]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        own = train(os.path.join(folder, "own"))
        calls = max(row.get("calls_per_trajectory", 0) for row in own)
        assert calls > 0.5, "the policy makes no calls, so nothing would be compared"
        print(f"our own loop: {len(own)} lines of metrics, up to {calls:.2f} calls in a trajectory", flush=True)
        for number, (name, agent) in enumerate(AGENTS.items()):
            try:
                led = train(os.path.join(folder, str(number)), agent)
                different = sum(1 for mine, theirs in zip(own, led) if mine != theirs) + abs(len(own) - len(led))
                result = "passed" if not different else f"FAILED: {different} lines of metrics differ"
            except Exception as error:
                result = f"FAILED: {error!r}"
            failed += result != "passed"
            print(f"{name:<40} {result}", flush=True)
    sys.exit(1 if failed else 0)


main()
