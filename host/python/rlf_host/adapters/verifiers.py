"""For verifiers (its version 1 stack, `verifiers.v1`): plugins' tools as a toolset, and plugins' rewards of a task.

    import verifiers.v1 as vf
    from rlf_host import Plugins
    from rlf_host.adapters.verifiers import PluginToolset, PluginToolsetConfig, plugin_reward

    class Question(vf.Task[QuestionData]):
        correct = plugin_reward(Plugins(only=["numeric-match"]), "numeric-match", "match", reference="answer")

        @classmethod
        def toolsets(cls, config):
            return [PluginToolset(PluginToolsetConfig(tools=["calculate"]))]
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Optional

import verifiers.v1 as vf
from pydantic import WithJsonSchema

from .. import AnswerRule, Plugins, Tool, Unavailable
from ..schemas import check_parameter, default_of


class PluginToolsetConfig(vf.ToolsetConfig):
    """The settings of a toolset.

    Attributes:
        directories: Plugin directories, besides the one that ships with the package.
        plugins: The plugins to load. Default: all.
        tools: The tools to offer. Default: all.
    """

    directories: list[str] = []
    plugins: Optional[list[str]] = None
    tools: Optional[list[str]] = None


class PluginToolset(vf.Toolset[PluginToolsetConfig, vf.State]):
    """Tools of plugins, each call in a fresh sandbox."""

    TOOL_PREFIX = None

    def register(self, mcp: Any) -> None:
        plugins = Plugins(*self.config.directories, only=self.config.plugins)
        for tool in plugins.select(self.config.tools):
            mcp.add_tool(_function(plugins, tool), name=tool.name, description=tool.description)


def _function(plugins: Plugins, tool: Tool) -> Callable[..., Awaitable[str]]:
    """A function whose signature has the tool's own schema. The host checks the arguments."""

    async def call(**arguments: Any) -> str:
        given = {name: value for name, value in arguments.items() if value is not None or name in required}
        result = await plugins.call_async(tool.name, given)
        if result.text is None:
            raise Unavailable(f"{tool.name}: {result.detail}")
        return result.text

    required = tool.input_schema.get("required", [])
    properties = tool.input_schema.get("properties", {})
    for name in properties:
        check_parameter(tool, name)
    kind = inspect.Parameter.KEYWORD_ONLY
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                kind,
                default=inspect.Parameter.empty if name in required else default_of(schema),
                annotation=Annotated[Any, WithJsonSchema(schema if isinstance(schema, dict) else {})],
            )
            for name, schema in properties.items()
        ],
        return_annotation=str,
    )
    return call


def plugin_reward(
    plugins: Plugins, reward: str, term: str, *, reference: str, answer: AnswerRule = "final-turn", weight: float = 1.0
) -> Any:
    """One term of a reward as a reward of a `vf.Task`. `reference` is the field of the task's data that it grades against.

    A trace that cannot be graded raises `GradeError`, which verifiers records as an error of the rollout.
    """

    async def graded(self: Any, trace: vf.Trace) -> float:
        messages = [message.model_dump() for message in trace.messages]
        (score,) = await plugins.grade_async(
            reward, [messages], reference=getattr(self.data, reference), prompt=self.data.prompt_text, answer=answer
        )
        return score.term(term)

    graded.__name__ = f"{reward}_{term}".replace("-", "_")
    return vf.reward(weight=weight)(graded)
