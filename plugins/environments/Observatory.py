"""An observatory's time allocation: proposals with a grant of hours, telescopes with instruments, nights."""

from typing import Dict, List, Literal, Optional, Union

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Telescope(BaseModel):
    """A dome and what may be mounted in it."""

    aperture: float = Field(..., gt=0, description="Metres")
    instruments: List[str] = Field(..., min_length=1, description="Instruments that fit")
    mounted: str = Field(..., min_length=1, description="The one that is mounted")
    open: bool = Field(default=True, description="Whether the dome can be used")


class Proposal(BaseModel):
    """Somebody's request that the committee has graded."""

    title: str = Field(..., min_length=1, description="What is to be observed")
    investigator: str = Field(..., min_length=1, description="Who asks for it")
    grade: Literal["A", "B", "C"] = Field(default="B", description="A is the best")
    instrument: str = Field(..., min_length=1, description="Instrument it needs")
    aperture: float = Field(default=0.0, ge=0, description="Smallest mirror that will do, metres")
    hours: float = Field(..., ge=0, description="Hours granted and not yet observed or allocated")


class Allocation(BaseModel):
    """Hours of a night."""

    proposal_id: str = Field(..., description="Key in proposals")
    telescope_id: str = Field(..., description="Key in telescopes")
    night: str = Field(..., pattern=r"^\d{4}-\d{2}-\d{2}$", description="Evening date, YYYY-MM-DD")
    hours: float = Field(..., gt=0, le=14, description="How long")
    status: Literal["planned", "observed", "lost"] = Field(default="planned", description="Lost ones met clouds")


class ObservatoryScenario(BaseModel):
    """Domes, proposals and the plan."""

    telescopes: Dict[str, Telescope] = Field(default_factory=dict, description="Telescopes by id")
    proposals: Dict[str, Proposal] = Field(default_factory=dict, description="Proposals by id")
    nights: Dict[str, float] = Field(default_factory=dict, description="Dark hours of each night, by date")
    plan: Dict[str, Allocation] = Field(default_factory=dict, description="Allocations by id")
    next_allocation: int = Field(default=1, ge=1, description="Number of the next allocation")


Scenario_Schema = [Telescope, Proposal, Allocation, ObservatoryScenario]


class Observatory:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = ObservatoryScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = ObservatoryScenario(**scenario)
        for telescope_id, telescope in state.telescopes.items():
            if telescope.mounted not in telescope.instruments:
                raise ValueError(f"{telescope_id} has {telescope.mounted!r} mounted; list it in its instruments")
        for allocation_id, allocation in state.plan.items():
            if allocation.proposal_id not in state.proposals or allocation.telescope_id not in state.telescopes:
                raise ValueError(f"{allocation_id} names a proposal or telescope that is not there; add it")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _telescope(self, telescope_id: str) -> Telescope:
        if telescope_id not in self.state.telescopes:
            raise ValueError(f"no telescope {telescope_id!r}; list_telescopes gives the ids")
        return self.state.telescopes[telescope_id]

    def _planned(self, allocation_id: str) -> Allocation:
        if allocation_id not in self.state.plan:
            raise ValueError(f"no allocation {allocation_id!r}; list_plan gives the ids")
        allocation = self.state.plan[allocation_id]
        if allocation.status != "planned":
            raise ValueError(f"{allocation_id} is {allocation.status}; only planned ones can be changed")
        return allocation

    def list_telescopes(self) -> List[dict]:
        return [{"telescope_id": k, **telescope.model_dump()} for k, telescope in self.state.telescopes.items()]

    def find_proposals(self, text: str, grade: Optional[str]) -> List[dict]:
        text = text.lower()
        return [
            {"proposal_id": proposal_id, **proposal.model_dump()}
            for proposal_id, proposal in self.state.proposals.items()
            if (text in proposal.title.lower() or text in proposal.investigator.lower())
            and grade in (None, proposal.grade)
        ]

    def list_plan(self, night: Optional[str]) -> List[dict]:
        return [
            {"allocation_id": allocation_id, **allocation.model_dump()}
            for allocation_id, allocation in self.state.plan.items()
            if night in (None, allocation.night)
        ]

    def free_hours(self, telescope_id: str, night: str) -> float:
        self._telescope(telescope_id)
        if night not in self.state.nights:
            known = ", ".join(sorted(self.state.nights))
            raise ValueError(f"{night} is not in this season; its nights are {known}")
        taken = [a.hours for a in self.state.plan.values() if (a.telescope_id, a.night) == (telescope_id, night)]
        return round(self.state.nights[night] - sum(taken), 2)

    def mount(self, telescope_id: str, instrument: str) -> dict:
        telescope = self._telescope(telescope_id)
        if instrument not in telescope.instruments:
            raise ValueError(f"{instrument!r} does not fit {telescope_id}; it takes {', '.join(telescope.instruments)}")
        for allocation_id, allocation in self.state.plan.items():
            if allocation.telescope_id == telescope_id and allocation.status == "planned":
                needed = self.state.proposals[allocation.proposal_id].instrument
                if needed != instrument:
                    raise ValueError(f"{allocation_id} needs {needed!r} on {telescope_id}; release it first")
        telescope.mounted = instrument
        return {"telescope_id": telescope_id, "mounted": instrument}

    def allocate(self, proposal_id: str, telescope_id: str, night: str, hours: float) -> dict:
        if proposal_id not in self.state.proposals:
            raise ValueError(f"no proposal {proposal_id!r}; find_proposals gives the ids")
        proposal, telescope = self.state.proposals[proposal_id], self._telescope(telescope_id)
        free = self.free_hours(telescope_id, night)
        if not telescope.open:
            raise ValueError(f"the dome of {telescope_id} is shut; choose another telescope")
        if telescope.aperture < proposal.aperture:
            raise ValueError(f"{proposal_id} needs {proposal.aperture} metres; {telescope_id} has {telescope.aperture}")
        if telescope.mounted != proposal.instrument:
            raise ValueError(f"{telescope_id} has {telescope.mounted!r} mounted; mount {proposal.instrument!r} first")
        if hours > proposal.hours:
            raise ValueError(f"{proposal_id} has {proposal.hours} hours left; allocate that or less")
        if hours > free:
            raise ValueError(f"{telescope_id} has {free} hours free on {night}; allocate that or less")
        allocation_id = f"A{self.state.next_allocation}"
        self.state.plan[allocation_id] = Allocation(
            proposal_id=proposal_id, telescope_id=telescope_id, night=night, hours=hours
        )
        self.state.next_allocation += 1
        proposal.hours = round(proposal.hours - hours, 2)
        return {"allocation_id": allocation_id, "hours_left": proposal.hours}

    def release(self, allocation_id: str) -> dict:
        allocation = self._planned(allocation_id)
        proposal = self.state.proposals[allocation.proposal_id]
        proposal.hours = round(proposal.hours + allocation.hours, 2)
        del self.state.plan[allocation_id]
        return {"proposal_id": allocation.proposal_id, "hours_left": proposal.hours}

    def close_night(self, allocation_id: str, clear: bool) -> dict:
        allocation = self._planned(allocation_id)
        proposal = self.state.proposals[allocation.proposal_id]
        allocation.status = "observed" if clear else "lost"
        # Only the best grade gets clouded hours back.
        if not clear and proposal.grade == "A":
            proposal.hours = round(proposal.hours + allocation.hours, 2)
        return {"status": allocation.status, "hours_left": proposal.hours}


mcp = FastMCP(name="Observatory")
api = Observatory()


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
def list_telescopes() -> List[dict]:
    """Telescopes with aperture, instruments and what is mounted."""
    return api.list_telescopes()


@mcp.tool()
def find_proposals(text: str, grade: Optional[Literal["A", "B", "C"]] = None) -> List[dict]:
    """Proposals by a part of their title or investigator.

    Args:
        text: what to look for
        grade: only those of this grade
    """
    if not text.strip():
        raise ValueError("text is empty; give a part of a title or name")
    return api.find_proposals(text.strip(), grade)


@mcp.tool()
def list_plan(night: Optional[str] = None) -> List[dict]:
    """Allocations of a night, or all of them.

    Args:
        night: YYYY-MM-DD
    """
    return api.list_plan(night)


@mcp.tool()
def free_hours(telescope_id: str, night: str) -> float:
    """Dark hours of a telescope that nobody has.

    Args:
        telescope_id: the telescope
        night: YYYY-MM-DD
    """
    return api.free_hours(telescope_id, night)


@mcp.tool()
def mount(telescope_id: str, instrument: str) -> dict:
    """Change the mounted instrument; planned allocations must not need the old one.

    Args:
        telescope_id: the telescope
        instrument: one that fits
    """
    return api.mount(telescope_id, instrument)


@mcp.tool()
def allocate(proposal_id: str, telescope_id: str, night: str, hours: Union[int, float]) -> dict:
    """Give a proposal hours of a night on a telescope that has its instrument mounted.

    Args:
        proposal_id: the proposal
        telescope_id: the telescope
        night: YYYY-MM-DD
        hours: how many, from its grant
    """
    if not 0 < hours <= 14:
        raise ValueError(f"hours is {hours}; give more than 0 and at most 14")
    return api.allocate(proposal_id, telescope_id, night, hours)


@mcp.tool()
def release(allocation_id: str) -> dict:
    """Take an allocation out of the plan; its hours go back to the proposal.

    Args:
        allocation_id: a planned one
    """
    return api.release(allocation_id)


@mcp.tool()
def close_night(allocation_id: str, clear: bool) -> dict:
    """Note what became of an allocation; of lost hours only grade A gets a second try.

    Args:
        allocation_id: a planned one
        clear: false if clouds took it
    """
    return api.close_night(allocation_id, clear)


if __name__ == "__main__":
    mcp.run()
