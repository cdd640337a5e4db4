"""A parcel depot with lockers of three sizes. Pick-up codes are drawn by chance, so the seed decides them."""

import random
from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

SIZES = ["S", "M", "L"]
FREE_DAYS = 3
LAST_DAY = 7
STORAGE_PER_DAY = 50


class Parcel(BaseModel):
    """A parcel, from its arrival to its pick-up or return."""

    recipient: str = Field(..., min_length=1, description="Who it is for")
    size: Literal["S", "M", "L"] = Field(default="S", description="Smallest locker it fits into")
    status: Literal["counter", "locker", "collected", "returned"] = Field(default="counter", description="Where it is")
    days: int = Field(default=0, ge=0, description="Days it has been in a locker")
    code: Optional[str] = Field(default=None, pattern=r"^\d{4}$", description="Pick-up code, once in a locker")


class Locker(BaseModel):
    """One door of the wall."""

    size: Literal["S", "M", "L"] = Field(default="S", description="Size of the locker")
    parcel_id: Optional[str] = Field(default=None, description="Parcel inside")
    jammed: bool = Field(default=False, description="Whether the door is stuck")


class ParcelDepotScenario(BaseModel):
    """The counter, the wall of lockers and the till."""

    parcels: Dict[str, Parcel] = Field(default_factory=dict, description="Parcels by id")
    lockers: Dict[str, Locker] = Field(default_factory=dict, description="Lockers by id")
    till: int = Field(default=0, ge=0, description="Storage fees taken, in cents")
    next_parcel: int = Field(default=1, ge=1, description="Number of the next parcel")


Scenario_Schema = [Parcel, Locker, ParcelDepotScenario]


class ParcelDepot:
    """The state and its rules; a method that raises has changed nothing and drawn nothing."""

    def __init__(self):
        self.state = ParcelDepotScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = ParcelDepotScenario(**scenario)
        for locker_id, locker in state.lockers.items():
            if locker.parcel_id is not None and locker.parcel_id not in state.parcels:
                raise ValueError(f"locker {locker_id} holds {locker.parcel_id!r}, which is not in parcels; add it")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _parcel(self, parcel_id: str) -> Parcel:
        if parcel_id not in self.state.parcels:
            raise ValueError(f"no parcel {parcel_id!r}; find_parcels gives the ids")
        return self.state.parcels[parcel_id]

    def _locker_of(self, parcel_id: str) -> Optional[Locker]:
        for locker in self.state.lockers.values():
            if locker.parcel_id == parcel_id:
                return locker
        return None

    def _new_code(self) -> str:
        taken = {parcel.code for parcel in self.state.parcels.values() if parcel.status == "locker"}
        while True:
            code = str(random.randint(1000, 9999))
            if code not in taken:
                return code

    def find_parcels(self, recipient: str) -> List[dict]:
        # A code is for the recipient alone, so the desk does not see it.
        return [
            {"parcel_id": parcel_id, **{k: v for k, v in parcel.model_dump().items() if k != "code"}}
            for parcel_id, parcel in self.state.parcels.items()
            if recipient.lower() in parcel.recipient.lower()
        ]

    def free_lockers(self, size: str) -> List[dict]:
        return [
            {"locker_id": locker_id, "size": locker.size}
            for locker_id, locker in self.state.lockers.items()
            if locker.parcel_id is None and not locker.jammed and SIZES.index(locker.size) >= SIZES.index(size)
        ]

    def accept_parcel(self, recipient: str, size: str) -> dict:
        parcel_id = f"P{self.state.next_parcel}"
        self.state.parcels[parcel_id] = Parcel(recipient=recipient, size=size)
        self.state.next_parcel += 1
        return {"parcel_id": parcel_id}

    def store_parcel(self, parcel_id: str, locker_id: str) -> dict:
        parcel = self._parcel(parcel_id)
        if parcel.status != "counter":
            raise ValueError(f"{parcel_id} is {parcel.status}; only parcels at the counter can be stored")
        if locker_id not in self.state.lockers:
            raise ValueError(f"no locker {locker_id!r}; free_lockers gives the ids")
        fitting = [free["locker_id"] for free in self.free_lockers(parcel.size)]
        if locker_id not in fitting:
            raise ValueError(f"{locker_id} is taken, jammed or too small for size {parcel.size}; see free_lockers")
        parcel.status, parcel.days, parcel.code = "locker", 0, self._new_code()
        self.state.lockers[locker_id].parcel_id = parcel_id
        return {"locker_id": locker_id, "code": parcel.code}

    def collect_parcel(self, recipient: str, code: str) -> dict:
        for parcel_id, parcel in self.state.parcels.items():
            if parcel.status == "locker" and parcel.code == code and parcel.recipient.lower() == recipient.lower():
                fee = max(0, parcel.days - FREE_DAYS) * STORAGE_PER_DAY
                self.state.till += fee
                self._take_out(parcel_id, "collected")
                return {"parcel_id": parcel_id, "fee": fee}
        raise ValueError(f"no parcel for {recipient} opens with {code}; check the name and the code")

    def return_to_sender(self, parcel_id: str) -> dict:
        parcel = self._parcel(parcel_id)
        if parcel.status not in ("counter", "locker"):
            raise ValueError(f"{parcel_id} is {parcel.status} already; nothing is left to return")
        self._take_out(parcel_id, "returned")
        return {"parcel_id": parcel_id, "status": "returned"}

    def _take_out(self, parcel_id: str, status: str) -> None:
        locker = self._locker_of(parcel_id)
        if locker is not None:
            locker.parcel_id = None
        parcel = self.state.parcels[parcel_id]
        parcel.status, parcel.code = status, None

    def end_day(self) -> dict:
        returned = []
        for parcel_id, parcel in self.state.parcels.items():
            if parcel.status == "locker":
                parcel.days += 1
                if parcel.days > LAST_DAY:
                    returned.append(parcel_id)
        for parcel_id in returned:
            self._take_out(parcel_id, "returned")
        return {"returned": returned}


mcp = FastMCP(name="ParcelDepot")
api = ParcelDepot()


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
def find_parcels(recipient: str) -> List[dict]:
    """Parcels by a part of the recipient's name; codes are not shown.

    Args:
        recipient: a part of the name
    """
    if not recipient.strip():
        raise ValueError("recipient is empty; give a part of the name")
    return api.find_parcels(recipient.strip())


@mcp.tool()
def free_lockers(size: Literal["S", "M", "L"]) -> List[dict]:
    """Free lockers that are at least so large.

    Args:
        size: size of the parcel
    """
    return api.free_lockers(size)


@mcp.tool()
def accept_parcel(recipient: str, size: Literal["S", "M", "L"]) -> dict:
    """Take a parcel in; it lies at the counter then.

    Args:
        recipient: who it is for
        size: its size
    """
    if not recipient.strip():
        raise ValueError("recipient is empty; say who the parcel is for")
    return api.accept_parcel(recipient.strip(), size)


@mcp.tool()
def store_parcel(parcel_id: str, locker_id: str) -> dict:
    """Put a parcel from the counter into a free locker and draw its pick-up code.

    Args:
        parcel_id: the parcel
        locker_id: a locker that is large enough
    """
    return api.store_parcel(parcel_id, locker_id)


@mcp.tool()
def collect_parcel(recipient: str, code: str) -> dict:
    """Hand a parcel out; after three days storage costs 50 cents a day.

    Args:
        recipient: full name
        code: the four digits
    """
    if len(code) != 4 or not code.isdigit():
        raise ValueError(f"code is {code!r}; give the four digits")
    return api.collect_parcel(recipient.strip(), code)


@mcp.tool()
def return_to_sender(parcel_id: str) -> dict:
    """Send a parcel back that nobody wants.

    Args:
        parcel_id: the parcel
    """
    return api.return_to_sender(parcel_id)


@mcp.tool()
def end_day() -> dict:
    """Count a day for all parcels in lockers; those beyond the seventh go back."""
    return api.end_day()


if __name__ == "__main__":
    mcp.run()
