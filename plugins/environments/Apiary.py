"""A bee yard's records: hives at sites, inspections, mite treatments, feeding and the honey harvest."""

from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

KG_PER_FRAME = 2.5
DAYS_AFTER_TREATMENT = 21
TREATMENT_FROM = 3.0


class Inspection(BaseModel):
    """What was seen under the lid."""

    day: int = Field(..., ge=0, description="Day of the year")
    brood: int = Field(..., ge=0, description="Frames with brood")
    mites: float = Field(..., ge=0, le=100, description="Mites on a hundred bees")


class Hive(BaseModel):
    """One colony and its boxes."""

    site_id: str = Field(..., description="Key in sites")
    queen: Optional[int] = Field(default=None, ge=2000, le=2100, description="Year of the queen; none if queenless")
    supers: int = Field(default=0, ge=0, le=4, description="Honey boxes on top")
    frames: int = Field(default=0, ge=0, description="Full frames of honey in the supers")
    sugar: float = Field(default=0.0, ge=0, description="Kilograms of sugar fed this year")
    treated: Optional[int] = Field(default=None, ge=0, description="Day of the last treatment")
    inspections: List[Inspection] = Field(default_factory=list, description="Oldest first")


class Site(BaseModel):
    """A place where hives may stand."""

    name: str = Field(..., min_length=1, description="What the place is called")
    room: int = Field(default=10, ge=0, description="Hives allowed")


class Store(BaseModel):
    """The shed."""

    honey: float = Field(default=0.0, ge=0, description="Kilograms of honey in buckets")
    sugar: float = Field(default=20.0, ge=0, description="Kilograms of sugar")
    treatments: Dict[str, int] = Field(default_factory=dict, description="Doses by product")
    supers: int = Field(default=2, ge=0, description="Empty honey boxes")


class ApiaryScenario(BaseModel):
    """Hives, sites and the shed."""

    hives: Dict[str, Hive] = Field(default_factory=dict, description="Hives by id")
    sites: Dict[str, Site] = Field(default_factory=dict, description="Sites by id")
    store: Store = Field(default_factory=Store, description="The shed")
    today: int = Field(default=150, ge=1, le=366, description="Day of the year")


Scenario_Schema = [Inspection, Hive, Site, Store, ApiaryScenario]


class Apiary:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = ApiaryScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = ApiaryScenario(**scenario)
        for hive_id, hive in state.hives.items():
            if hive.site_id not in state.sites:
                raise ValueError(f"hive {hive_id} stands at {hive.site_id!r}, which is not in sites; add it there")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _hive(self, hive_id: str) -> Hive:
        if hive_id not in self.state.hives:
            raise ValueError(f"no hive {hive_id!r}; list_hives gives the ids")
        return self.state.hives[hive_id]

    def list_sites(self) -> List[dict]:
        return [
            {
                "site_id": site_id,
                **site.model_dump(),
                "hives": [k for k, hive in self.state.hives.items() if hive.site_id == site_id],
            }
            for site_id, site in self.state.sites.items()
        ]

    def list_hives(self, site_id: Optional[str]) -> List[dict]:
        return [
            {
                "hive_id": hive_id,
                "site_id": hive.site_id,
                "queen": hive.queen,
                "supers": hive.supers,
                "frames": hive.frames,
                "treated": hive.treated,
                "last": hive.inspections[-1].model_dump() if hive.inspections else None,
            }
            for hive_id, hive in self.state.hives.items()
            if site_id in (None, hive.site_id)
        ]

    def inspect(self, hive_id: str, brood: int, mites: float) -> dict:
        hive = self._hive(hive_id)
        if hive.inspections and hive.inspections[-1].day == self.state.today:
            raise ValueError(f"{hive_id} was opened today; leave the bees alone until tomorrow")
        hive.inspections.append(Inspection(day=self.state.today, brood=brood, mites=mites))
        advice = "treat" if mites >= TREATMENT_FROM else "fine"
        return {"hive_id": hive_id, "advice": advice}

    def treat(self, hive_id: str, product: str) -> dict:
        hive = self._hive(hive_id)
        if self.state.store.treatments.get(product, 0) < 1:
            have = ", ".join(sorted(k for k, n in self.state.store.treatments.items() if n)) or "nothing"
            raise ValueError(f"no dose of {product} in the shed; it has {have}")
        if hive.frames:
            raise ValueError(f"{hive_id} has {hive.frames} frames of honey on; harvest them first")
        self.state.store.treatments[product] -= 1
        hive.treated = self.state.today
        return {"hive_id": hive_id, "doses_left": self.state.store.treatments[product]}

    def add_super(self, hive_id: str) -> dict:
        hive = self._hive(hive_id)
        if hive.queen is None:
            raise ValueError(f"{hive_id} has no queen; a colony that shrinks needs no super")
        if hive.supers == 4:
            raise ValueError(f"{hive_id} has four supers, as many as it carries; harvest instead")
        if self.state.store.supers < 1:
            raise ValueError("no empty super in the shed; there is none to add")
        self.state.store.supers -= 1
        hive.supers += 1
        return {"hive_id": hive_id, "supers": hive.supers}

    def harvest(self, hive_id: str, frames: int) -> dict:
        hive = self._hive(hive_id)
        if frames > hive.frames:
            raise ValueError(f"{hive_id} has {hive.frames} full frames; take that or fewer")
        if hive.treated is not None and self.state.today - hive.treated < DAYS_AFTER_TREATMENT:
            wait = hive.treated + DAYS_AFTER_TREATMENT
            raise ValueError(f"{hive_id} was treated on day {hive.treated}; its honey is clean from day {wait} on")
        hive.frames -= frames
        self.state.store.honey = round(self.state.store.honey + KG_PER_FRAME * frames, 1)
        return {"hive_id": hive_id, "honey": self.state.store.honey}

    def feed(self, hive_id: str, kilograms: float) -> dict:
        hive = self._hive(hive_id)
        if hive.supers:
            raise ValueError(f"{hive_id} has supers on and sugar would get into the honey; do not feed it now")
        if kilograms > self.state.store.sugar:
            raise ValueError(f"the shed has {self.state.store.sugar} kg of sugar; feed that or less")
        self.state.store.sugar = round(self.state.store.sugar - kilograms, 1)
        hive.sugar = round(hive.sugar + kilograms, 1)
        return {"hive_id": hive_id, "sugar": hive.sugar}

    def move_hive(self, hive_id: str, site_id: str) -> dict:
        hive = self._hive(hive_id)
        if site_id not in self.state.sites:
            raise ValueError(f"no site {site_id!r}; list_sites gives the ids")
        if hive.site_id == site_id:
            raise ValueError(f"{hive_id} stands there already; name another site")
        if hive.supers > 1:
            raise ValueError(f"{hive_id} has {hive.supers} supers and is too heavy; move one with one at most")
        standing = sum(other.site_id == site_id for other in self.state.hives.values())
        if standing >= self.state.sites[site_id].room:
            raise ValueError(f"{site_id} is full with {standing} hives; choose another site")
        hive.site_id = site_id
        return {"hive_id": hive_id, "site_id": site_id}


mcp = FastMCP(name="Apiary")
api = Apiary()


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
def list_sites() -> List[dict]:
    """Sites with their room and the hives that stand there."""
    return api.list_sites()


@mcp.tool()
def list_hives(site_id: Optional[str] = None) -> List[dict]:
    """Hives of a site, or all of them, with the last inspection.

    Args:
        site_id: only this site
    """
    return api.list_hives(site_id)


@mcp.tool()
def inspect(hive_id: str, brood: int, mites: float) -> dict:
    """Record today's inspection of a hive; once a day.

    Args:
        hive_id: the hive
        brood: frames with brood
        mites: mites on a hundred bees; from 3 on it should be treated
    """
    if brood < 0 or not 0 <= mites <= 100:
        raise ValueError("brood is 0 or more and mites 0 to 100; look again")
    return api.inspect(hive_id, brood, mites)


@mcp.tool()
def treat(hive_id: str, product: Literal["formic", "oxalic", "thymol"]) -> dict:
    """Treat a hive without honey frames against mites.

    Args:
        hive_id: the hive
        product: acid or oil, from the shed
    """
    return api.treat(hive_id, product)


@mcp.tool()
def add_super(hive_id: str) -> dict:
    """Put an empty honey box from the shed on a hive.

    Args:
        hive_id: the hive
    """
    return api.add_super(hive_id)


@mcp.tool()
def harvest(hive_id: str, frames: int) -> dict:
    """Take full frames of honey, 2.5 kg each; not within 21 days of a treatment.

    Args:
        hive_id: the hive
        frames: how many
    """
    if frames < 1:
        raise ValueError(f"frames is {frames}; take at least 1")
    return api.harvest(hive_id, frames)


@mcp.tool()
def feed(hive_id: str, kilograms: float) -> dict:
    """Feed sugar to a hive without supers.

    Args:
        hive_id: the hive
        kilograms: up to 10
    """
    if not 0 < kilograms <= 10:
        raise ValueError(f"kilograms is {kilograms}; feed more than 0 and at most 10")
    return api.feed(hive_id, kilograms)


@mcp.tool()
def move_hive(hive_id: str, site_id: str) -> dict:
    """Move a hive with one super at most to a site that has room.

    Args:
        hive_id: the hive
        site_id: where to
    """
    return api.move_hive(hive_id, site_id)


if __name__ == "__main__":
    mcp.run()
