"""For verl: plugins' tools as function tools, and plugins' rewards as its reward function.

A file for `actor_rollout_ref.rollout.multi_turn.function_tool_path`:

    from rlf_host import Plugins
    from rlf_host.adapters import verl

    verl.register_tools(Plugins("my-plugins"), ["search"])

A file for `reward.custom_reward_function.path`, with the function's name `compute_score`:

    compute_score = verl.reward_function(Plugins("my-plugins"), "numeric-match", "match", answer="boxed")
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Optional

from .. import AnswerRule, Plugins, Tool, Unavailable
from ..schemas import simple_property

#: What Qwen's templates write after an observation. verl decodes a whole trajectory, observations included.
END_OF_OBSERVATION = "</tool_response>"


def register_tools(plugins: Plugins, names: Optional[Iterable[str]] = None) -> None:
    """Registers tools as verl's function tools. Without names, all.

    verl's schemas have only types, descriptions and enumerations. The host checks arguments against the tool's whole
    schema, and the model reads what was wrong. After an infrastructure failure verl shows the model the exception.
    """
    from verl.tools.function_tool import function_tool

    for tool in plugins.select(names):
        function_tool(tool.name, schema=_schema(tool))(_call(plugins, tool.name))


def _call(plugins: Plugins, name: str) -> Callable[..., Awaitable[tuple[str, float, dict[str, float]]]]:
    async def call(**arguments: Any) -> tuple[str, float, dict[str, float]]:
        result = await plugins.call_async(name, arguments)
        if result.text is None:
            raise Unavailable(f"{name}: {result.detail}")
        return result.text, 0.0, result.metrics

    call.__name__ = call.__qualname__ = name
    return call


def _schema(tool: Tool) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    kept = {name: simple_property(schema) for name, schema in properties.items()}
    parameters = {"type": "object", "properties": kept, "required": tool.input_schema.get("required", [])}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def reward_function(
    plugins: Plugins, reward: str, term: str, *, answer: AnswerRule = "tag"
) -> Callable[..., Awaitable[dict[str, float]]]:
    """A function for verl's reward loop. Its score is one term of a reward; the other terms are kept beside it.

    verl gives it the text of the whole trajectory. Only what follows the last `</tool_response>` is graded, so that no
    tool can answer in the model's place. A solution that cannot be graded raises `GradeError`, because verl has no way
    to leave one out.
    """

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Optional[Mapping[str, Any]] = None,
        **_: Any,
    ) -> dict[str, float]:
        said = solution_str.rsplit(END_OF_OBSERVATION, 1)[-1].strip().removeprefix("assistant\n")
        (score,) = await plugins.grade_async(reward, [said], reference=ground_truth, answer=answer, source=data_source)
        value = score.term(term)
        return {**(score.terms or {}), "score": value}

    return compute_score
