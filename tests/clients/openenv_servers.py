"""Two environments written with OpenEnv's own package, each on a port: `openenv_servers.py NAME PORT`."""

import sys

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State

MOST_SESSIONS = 2_000


class Guess(Action):
    guess: int


class Right(Observation):
    right: bool = False


class Guessing(Environment):
    """A number has to be guessed. The task says it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, number=0, **kwargs):
        self.number, self._state = number, State(episode_id=episode_id)
        return Right()

    def step(self, action, timeout_s=None, **kwargs):
        if action.guess < 0:
            raise ValueError("there are no numbers below 0")
        self._state.step_count += 1
        right = action.guess == self.number
        return Right(right=right, reward=float(right), done=right)

    @property
    def state(self):
        return self._state


class Counting(MCPEnvironment):
    """A counter, with a tool."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        self.count, self.goal, self._state = 0, 0, State()
        server = FastMCP("counter")

        @server.tool
        def add(by: int) -> int:
            """Adds to the count, and returns it."""
            self.count += by
            return self.count

        super().__init__(server)

    def reset(self, seed=None, episode_id=None, goal=0, **kwargs):
        self.count, self.goal, self._state = 0, goal, State(episode_id=episode_id)
        return Observation()

    async def step_async(self, action, **kwargs):
        observed = await super().step_async(action, **kwargs)
        if isinstance(action, CallToolAction):
            observed.reward, observed.done = float(self.count == self.goal), self.count == self.goal
        return observed

    def _step_impl(self, action, timeout_s=None, **kwargs):
        raise ValueError("this environment has tools only")

    @property
    def state(self):
        return self._state


ENVIRONMENTS = {"guessing": (Guessing, Guess, Right), "counting": (Counting, CallToolAction, CallToolObservation)}

if __name__ == "__main__":
    name, port = sys.argv[1:]
    app = create_fastapi_app(*ENVIRONMENTS[name], max_concurrent_envs=MOST_SESSIONS)
    uvicorn.run(app, port=int(port), log_level="warning")
