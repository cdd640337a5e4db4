"""A workshop that lends tools: certificates for the dangerous ones, deposits, and repairs of what broke."""

from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Tool(BaseModel):
    """One thing on the wall."""

    name: str = Field(..., min_length=1, description="What it is")
    deposit: int = Field(default=0, ge=0, description="Cents held while it is out")
    certificate: Optional[str] = Field(default=None, description="Certificate it takes to borrow it")
    state: Literal["good", "broken"] = Field(default="good", description="Broken ones stay in the shed")
    holder: Optional[str] = Field(default=None, description="Who has it, by id")


class Person(BaseModel):
    """Somebody who uses the workshop."""

    name: str = Field(..., min_length=1, description="Full name")
    balance: int = Field(default=0, ge=0, description="Cents that deposits are taken from")
    certificates: List[str] = Field(default_factory=list, description="Certificates held")


class ToolShedScenario(BaseModel):
    """The wall, its users and the repair fund."""

    tools: Dict[str, Tool] = Field(default_factory=dict, description="Tools by id")
    people: Dict[str, Person] = Field(default_factory=dict, description="People by id")
    fund: int = Field(default=0, ge=0, description="Cents kept from deposits of broken tools")


Scenario_Schema = [Tool, Person, ToolShedScenario]


class ToolShed:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = ToolShedScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = ToolShedScenario(**scenario)
        for tool_id, tool in state.tools.items():
            if tool.holder is not None and tool.holder not in state.people:
                raise ValueError(f"tool {tool_id} is held by {tool.holder!r}, who is not in people; add them there")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _tool(self, tool_id: str) -> Tool:
        if tool_id not in self.state.tools:
            raise ValueError(f"no tool {tool_id!r}; find_tools gives the ids")
        return self.state.tools[tool_id]

    def _person(self, person_id: str) -> Person:
        if person_id not in self.state.people:
            raise ValueError(f"no person {person_id!r}; find_person gives the ids")
        return self.state.people[person_id]

    def find_tools(self, text: str) -> List[dict]:
        return [
            {"tool_id": tool_id, **tool.model_dump()}
            for tool_id, tool in self.state.tools.items()
            if text.lower() in tool.name.lower()
        ]

    def find_person(self, name: str) -> List[dict]:
        return [
            {
                "person_id": person_id,
                **person.model_dump(),
                "holds": [k for k, tool in self.state.tools.items() if tool.holder == person_id],
            }
            for person_id, person in self.state.people.items()
            if name.lower() in person.name.lower()
        ]

    def borrow(self, tool_id: str, person_id: str) -> dict:
        tool, person = self._tool(tool_id), self._person(person_id)
        if tool.holder is not None:
            raise ValueError(f"{self.state.people[tool.holder].name} has {tool_id}; bring_back comes first")
        if tool.state == "broken":
            raise ValueError(f"{tool_id} is broken; repair it or choose another")
        if tool.certificate is not None and tool.certificate not in person.certificates:
            raise ValueError(f"{tool_id} takes the certificate {tool.certificate!r}; certify {person.name} first")
        if tool.deposit > person.balance:
            short = tool.deposit - person.balance
            raise ValueError(f"{person.name} is {short} cents short of the deposit; pay_in that much first")
        person.balance -= tool.deposit
        tool.holder = person_id
        return {"tool_id": tool_id, "balance": person.balance}

    def bring_back(self, tool_id: str, broken: bool) -> dict:
        tool = self._tool(tool_id)
        if tool.holder is None:
            raise ValueError(f"{tool_id} is in the shed; nobody can bring it back")
        person = self.state.people[tool.holder]
        # Half of the deposit stays here to pay for the repair.
        kept = tool.deposit // 2 if broken else 0
        person.balance += tool.deposit - kept
        self.state.fund += kept
        tool.holder = None
        if broken:
            tool.state = "broken"
        return {"tool_id": tool_id, "kept": kept}

    def repair(self, tool_id: str, cost: int) -> dict:
        tool = self._tool(tool_id)
        if tool.state == "good":
            raise ValueError(f"{tool_id} is not broken; nothing to repair")
        if cost > self.state.fund:
            raise ValueError(f"the fund has {self.state.fund} cents; repair it for that or less")
        self.state.fund -= cost
        tool.state = "good"
        return {"tool_id": tool_id, "fund": self.state.fund}

    def certify(self, person_id: str, certificate: str) -> dict:
        person = self._person(person_id)
        if certificate in person.certificates:
            raise ValueError(f"{person.name} has the certificate {certificate!r} already")
        known = sorted({tool.certificate for tool in self.state.tools.values() if tool.certificate is not None})
        if certificate not in known:
            raise ValueError(f"no tool takes {certificate!r}; the certificates are {', '.join(known) or 'none'}")
        person.certificates.append(certificate)
        return {"person_id": person_id, "certificates": list(person.certificates)}

    def pay_in(self, person_id: str, cents: int) -> dict:
        person = self._person(person_id)
        person.balance += cents
        return {"person_id": person_id, "balance": person.balance}


mcp = FastMCP(name="ToolShed")
api = ToolShed()


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
def find_tools(text: str) -> List[dict]:
    """Tools by a part of their name."""
    if not text.strip():
        raise ValueError("text is empty; give a part of the name")
    return api.find_tools(text.strip())


@mcp.tool()
def find_person(name: str) -> List[dict]:
    """People by a part of their name, with balance and tools held."""
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_person(name.strip())


@mcp.tool()
def borrow(tool_id: str, person_id: str) -> dict:
    """Lend a tool; its deposit is taken from the balance."""
    return api.borrow(tool_id, person_id)


@mcp.tool()
def bring_back(tool_id: str, broken: bool = False) -> dict:
    """Take a tool back; a broken one costs half the deposit."""
    return api.bring_back(tool_id, broken)


@mcp.tool()
def repair(tool_id: str, cost: int) -> dict:
    """Repair a broken tool, paid from the fund in cents."""
    if cost < 0:
        raise ValueError(f"cost is {cost}; give 0 or more")
    return api.repair(tool_id, cost)


@mcp.tool()
def certify(person_id: str, certificate: str) -> dict:
    """Give a person a certificate."""
    if not certificate.strip():
        raise ValueError("certificate is empty; name it")
    return api.certify(person_id, certificate.strip())


@mcp.tool()
def pay_in(person_id: str, cents: int) -> dict:
    """Add cents to a person's balance."""
    if cents < 1:
        raise ValueError(f"cents is {cents}; pay in at least 1")
    return api.pay_in(person_id, cents)


if __name__ == "__main__":
    mcp.run()
