"""A heated greenhouse: zones with vents and heaters, one water tank, and a clock that the tools move."""

from typing import Dict, List, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

HEATER_DEGREES = 1.5
SCORCHING_HOURS = range(11, 16)


class Zone(BaseModel):
    """A part of the house with one crop."""

    crop: str = Field(..., min_length=1, description="What grows there")
    temperature: float = Field(..., ge=-20, le=60, description="Degrees Celsius")
    moisture: int = Field(default=50, ge=0, le=100, description="Soil moisture, percent")
    vent: int = Field(default=0, ge=0, le=100, description="How far the roof vent is open, percent")
    heater: bool = Field(default=False, description="Whether the heater runs")
    lowest: float = Field(default=5.0, description="Coldest the crop bears, degrees Celsius")
    highest: float = Field(default=35.0, description="Warmest the crop bears, degrees Celsius")


class Tank(BaseModel):
    """Rain water that all zones share."""

    litres: int = Field(default=100, ge=0, description="Water in the tank")
    capacity: int = Field(default=200, gt=0, description="Litres it can hold")


class GreenhouseScenario(BaseModel):
    """The house, its tank and the weather outside."""

    zones: Dict[str, Zone] = Field(default_factory=dict, description="Zones by id")
    tank: Tank = Field(default_factory=Tank, description="The shared water tank")
    outside: float = Field(default=10.0, ge=-40, le=50, description="Degrees Celsius outside")
    hour: int = Field(default=8, ge=0, lt=24, description="Hour of the day")
    log: List[str] = Field(default_factory=list, description="Alarms so far, oldest first")


Scenario_Schema = [Zone, Tank, GreenhouseScenario]


class Greenhouse:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = GreenhouseScenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = GreenhouseScenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _zone(self, zone_id: str) -> Zone:
        if zone_id not in self.state.zones:
            raise ValueError(f"no zone {zone_id!r}; list_zones gives the ids")
        return self.state.zones[zone_id]

    def list_zones(self, crop: Optional[str]) -> List[dict]:
        return [
            {"zone_id": zone_id, **zone.model_dump()}
            for zone_id, zone in self.state.zones.items()
            if crop is None or crop.lower() in zone.crop.lower()
        ]

    def read_house(self) -> dict:
        return {"hour": self.state.hour, "outside": self.state.outside, "tank": self.state.tank.model_dump()}

    def set_vent(self, zone_id: str, percent: int) -> dict:
        zone = self._zone(zone_id)
        if zone.heater and percent > 20:
            raise ValueError(f"the heater of {zone_id} runs; set_heater it off, or open 20 percent at most")
        zone.vent = percent
        return {"zone_id": zone_id, "vent": percent}

    def set_heater(self, zone_id: str, on: bool) -> dict:
        zone = self._zone(zone_id)
        if on and zone.vent > 20:
            raise ValueError(f"the vent of {zone_id} is open by {zone.vent} percent; set_vent to 20 or less first")
        zone.heater = on
        return {"zone_id": zone_id, "heater": on}

    def water(self, zone_id: str, litres: int) -> dict:
        zone = self._zone(zone_id)
        if self.state.hour in SCORCHING_HOURS:
            raise ValueError(f"it is {self.state.hour}:00 and wet leaves scorch until 16:00; wait first")
        if litres > self.state.tank.litres:
            raise ValueError(f"the tank has {self.state.tank.litres} litres; give less or refill_tank first")
        if zone.moisture + 2 * litres > 100:
            most = (100 - zone.moisture) // 2
            raise ValueError(f"{zone_id} would stand in water; give {most} litres at most")
        self.state.tank.litres -= litres
        zone.moisture += 2 * litres
        return {"zone_id": zone_id, "moisture": zone.moisture, "tank": self.state.tank.litres}

    def refill_tank(self, litres: int) -> dict:
        tank = self.state.tank
        if tank.litres + litres > tank.capacity:
            raise ValueError(f"the tank has room for {tank.capacity - tank.litres} litres; fill in that or less")
        tank.litres += litres
        return {"litres": tank.litres}

    def wait(self, hours: int) -> dict:
        for _ in range(hours):
            self.state.hour = (self.state.hour + 1) % 24
            for zone_id, zone in self.state.zones.items():
                self._pass_hour(zone_id, zone)
        return {"hour": self.state.hour, "temperatures": {k: z.temperature for k, z in self.state.zones.items()}}

    def _pass_hour(self, zone_id: str, zone: Zone) -> None:
        # A closed zone loses a tenth of the difference an hour, an open one up to half of it.
        share = 0.1 + 0.4 * zone.vent / 100
        warmth = HEATER_DEGREES if zone.heater else 0.0
        reached = zone.temperature + share * (self.state.outside - zone.temperature) + warmth
        zone.temperature = round(min(60.0, max(-20.0, reached)), 1)
        zone.moisture = max(0, zone.moisture - 1)
        if zone.temperature < zone.lowest:
            self.state.log.append(f"{self.state.hour}:00 {zone_id} too cold")
        elif zone.temperature > zone.highest:
            self.state.log.append(f"{self.state.hour}:00 {zone_id} too warm")


mcp = FastMCP(name="Greenhouse")
api = Greenhouse()


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
def list_zones(crop: Optional[str] = None) -> List[dict]:
    """Zones with their climate.

    Args:
        crop: only zones with this crop
    """
    return api.list_zones(crop)


@mcp.tool()
def read_house() -> dict:
    """The hour, the temperature outside and the water tank."""
    return api.read_house()


@mcp.tool()
def set_vent(zone_id: str, percent: int) -> dict:
    """Open or close the roof vent of a zone.

    Args:
        zone_id: the zone
        percent: 0 is shut, 100 wide open; 20 at most while the heater runs
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"percent is {percent}; give 0 to 100")
    return api.set_vent(zone_id, percent)


@mcp.tool()
def set_heater(zone_id: str, on: bool) -> dict:
    """Start or stop the heater of a zone.

    Args:
        zone_id: the zone
        on: true starts it
    """
    return api.set_heater(zone_id, on)


@mcp.tool()
def water(zone_id: str, litres: int) -> dict:
    """Water a zone from the tank; a litre adds two percent of moisture. Not from 11:00 to 15:59.

    Args:
        zone_id: the zone
        litres: how much
    """
    if litres < 1:
        raise ValueError(f"litres is {litres}; give at least 1")
    return api.water(zone_id, litres)


@mcp.tool()
def refill_tank(litres: int) -> dict:
    """Fill water into the tank.

    Args:
        litres: how much
    """
    if litres < 1:
        raise ValueError(f"litres is {litres}; fill in at least 1")
    return api.refill_tank(litres)


@mcp.tool()
def wait(hours: int) -> dict:
    """Let time pass: zones drift towards the temperature outside, heaters warm, soil dries.

    Args:
        hours: 1 to 12
    """
    if not 1 <= hours <= 12:
        raise ValueError(f"hours is {hours}; wait 1 to 12 at a time")
    return api.wait(hours)


if __name__ == "__main__":
    mcp.run()
