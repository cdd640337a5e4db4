"""Runs the adapters of the Python package with the real trainers: TRL, verl and verifiers, from PyPI.

    cargo xtask clients trainers

The models have random weights and are made here, so they show that the parts fit together, and not that anything is
learned.
"""

import asyncio
import json
import logging
import tempfile
from pathlib import Path

from rlf_host import Environment, Plugins

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "plugins/environments/Library.py"


def scenario():
    scenarios = json.loads((LIBRARY.parent / "scenarios.json").read_text())
    return next(one for one in scenarios if one["id"] == "library-lend")


def trl():
    """One step of GRPO, with a reward of a plugin and the verdict of an environment."""
    from datasets import Dataset
    from small_model import small_model
    from trl import GRPOConfig, GRPOTrainer

    from rlf_host.adapters.trl import environment_class, reward_func

    recorded = scenario()
    environment = environment_class(Environment(LIBRARY))
    # The gold calls through the methods that a model would call.
    session = environment()
    session.reset(setup=recorded["task"], reference=json.dumps({"state": recorded["expect"]}))
    before = session.get_reward()
    for name, arguments in recorded["calls"]:
        getattr(session, name)(**arguments)
    assert (before < 1.0, session.get_reward()) == (True, 1.0), before

    model, tokenizer = small_model()
    row = {
        "prompt": [{"role": "user", "content": "Lend The Salt Road to Ida."}],
        "answer": "42",
        "setup": json.dumps(recorded["task"]),
        "reference": json.dumps({"state": recorded["expect"]}),
    }
    with tempfile.TemporaryDirectory() as output:
        settings = GRPOConfig(
            output_dir=output, max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=8,
            report_to=[], use_cpu=True, logging_steps=1, save_strategy="no",
        )
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            args=settings,
            train_dataset=Dataset.from_list([row] * 4),
            reward_funcs=[reward_func(Plugins(only=["numeric-match"]), "numeric-match", "match")],
            environment_factory=environment,
        )
        trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["rewards/numeric-match.match/mean"] == 0.0, logged
    assert logged["rewards/Library/mean"] == before, logged


def trl_class():
    """An environment class for TRL is loaded unchanged: the same tools, results and rewards as its object in this process."""
    from transformers.utils import get_json_schema

    page = (ROOT / "docs/environments.md").read_text()
    source = next(part.removeprefix("python\n") for part in page.split("```") if "class Guess:" in part)
    namespace = {}
    exec(source, namespace)
    own = namespace["Guess"]()
    row = {"low": 5, "high": 5}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Guess.py"
        file.write_text(source)
        with Environment(file).open({"servers": {"Guess": row}}) as session:
            assert [message["content"] for message in session.messages] == [own.reset(**row)]
            described = get_json_schema(own.guess)["function"]
            tool = session.tools["guess"]
            assert (tool.name, tool.description) == (described["name"], described["description"]), tool
            properties = described["parameters"]["properties"]
            assert tool.input_schema["properties"] == properties, (tool.input_schema, properties)
            for number in (1, 9, 5):
                assert session.call("guess", {"number": number}).text == str(own.guess(number))
                assert session.verify({}).score == own.get_reward()


def verl():
    """Function tools through verl's registry, and a reward function as its reward loop calls it."""
    from verl.tools import function_tool

    from rlf_host.adapters import verl as adapter

    plugins = Plugins(only=["calculator", "numeric-match"])
    adapter.register_tools(plugins, ["calculate"])
    tool = function_tool.get_function_tool("calculate")
    assert tool.is_async and tool.tool_schema.function.parameters.required == ["expression"]

    async def ask(**arguments):
        response, reward, _ = function_tool.normalize_function_tool_return(await tool.call(arguments))
        return response.text, reward

    assert asyncio.run(ask(expression="6*7")) == ("42", 0.0)
    assert "expression" in asyncio.run(ask(wrong=1))[0]
    compute_score = adapter.reward_function(plugins, "numeric-match", "match", answer="boxed")

    async def score(text):
        return await compute_score(data_source="d", solution_str=text, ground_truth="42", extra_info={}, reward_router_address=None)

    assert asyncio.run(score(r"<think>\boxed{41}</think> \boxed{42}")) == {"score": 1.0, "match": 1.0}
    assert asyncio.run(score("42"))["score"] == 0.0


def verifiers():
    """A toolset in an MCP server, and a reward of a task."""
    import verifiers.v1 as vf
    from mcp.server.mcpserver import MCPServer

    from rlf_host.adapters.verifiers import PluginToolset, PluginToolsetConfig, plugin_reward

    toolset = PluginToolset(PluginToolsetConfig(plugins=["calculator"], tools=["calculate"]))
    server = MCPServer("test")
    toolset.register(server)

    async def use():
        (tool,) = await server.list_tools()
        assert tool.input_schema["required"] == ["expression"], tool.input_schema
        assert tool.input_schema["properties"]["expression"]["type"] == "string"
        return await server.call_tool("calculate", {"expression": "6*7"})

    assert "42" in str(asyncio.run(use()))

    class Data(vf.TaskData):
        answer: str

    class Question(vf.Task[Data]):
        correct = plugin_reward(Plugins(only=["numeric-match"]), "numeric-match", "match", reference="answer", weight=2.0)

    task = Question(Data(prompt="6*7?", answer="42"))
    trace = conversation(vf, task, [vf.UserMessage(content="6*7?"), vf.AssistantMessage(content="It is 42.")])
    asyncio.run(task.score(trace))
    assert trace.reward == 2.0, trace.rewards


def conversation(vf, task, messages):
    """The trace of a finished conversation, in which every message follows the one before it."""
    from verifiers.v1.graph import MessageNode

    nodes = [
        MessageNode(message=message, parent=number - 1 if number else None, sampled=message.role == "assistant")
        for number, message in enumerate(messages)
    ]
    agent = vf.AgentInfo(config=vf.AgentConfig())
    return vf.Trace(task=vf.TraceTask(type="Question", data=task.data), agent=agent, nodes=nodes)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    for trainer in (trl, trl_class, verl, verifiers):
        trainer()
        print(f"ok  {trainer.__name__}: {trainer.__doc__}", flush=True)
