"""A lamp, to see whether environments in Python can be played."""

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel


class ProbeScenario(BaseModel):
    lit: bool = False


Scenario_Schema = [ProbeScenario]


class Probe:
    def __init__(self):
        self.state = ProbeScenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = ProbeScenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()


mcp = FastMCP(name="Probe")
api = Probe()


@mcp.tool()
def load_scenario(scenario: dict) -> str:
    """Replace the whole state."""
    api.load_scenario(scenario)
    return "loaded"


@mcp.tool()
def save_scenario() -> dict:
    """The whole state."""
    return api.save_scenario()


@mcp.tool()
def light() -> str:
    """Light the lamp."""
    api.state.lit = True
    return "the lamp is lit"


if __name__ == "__main__":
    mcp.run()
