"""A gym's class schedule: places, waiting lists, and members who pay with credits."""

from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


class Course(BaseModel):
    """One class of the week."""

    name: str = Field(..., min_length=1, description="What is taught")
    day: Day = Field(..., description="Day of the week")
    start: str = Field(..., pattern=r"^[0-2]\d:[0-5]\d$", description="Start, HH:MM; a class takes an hour")
    places: int = Field(default=10, ge=1, description="How many may come")
    booked: List[str] = Field(default_factory=list, description="Members with a place, by id")
    waiting: List[str] = Field(default_factory=list, description="Members who wait, first come first")


class Member(BaseModel):
    """Somebody who trains here."""

    name: str = Field(..., min_length=1, description="Full name")
    credits: int = Field(default=0, ge=0, description="Classes paid for")


class GymScenario(BaseModel):
    """The week and its members."""

    classes: Dict[str, Course] = Field(default_factory=dict, description="Classes by id")
    members: Dict[str, Member] = Field(default_factory=dict, description="Members by id")


Scenario_Schema = [Course, Member, GymScenario]


class Gym:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = GymScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = GymScenario(**scenario)
        for class_id, course in state.classes.items():
            for member_id in course.booked + course.waiting:
                if member_id not in state.members:
                    raise ValueError(f"class {class_id} lists {member_id!r}, who is not in members; add them there")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _course(self, class_id: str) -> Course:
        if class_id not in self.state.classes:
            raise ValueError(f"no class {class_id!r}; list_classes gives the ids")
        return self.state.classes[class_id]

    def _member(self, member_id: str) -> Member:
        if member_id not in self.state.members:
            raise ValueError(f"no member {member_id!r}; find_member gives the ids")
        return self.state.members[member_id]

    def _clash(self, member_id: str, course: Course) -> Optional[str]:
        for class_id, other in self.state.classes.items():
            if member_id in other.booked and other.day == course.day:
                if abs(_minutes(other.start) - _minutes(course.start)) < 60:
                    return class_id
        return None

    def list_classes(self, day: Optional[str]) -> List[dict]:
        return [
            {
                "class_id": class_id,
                "name": course.name,
                "day": course.day,
                "start": course.start,
                "free": max(0, course.places - len(course.booked)),
                "waiting": len(course.waiting),
            }
            for class_id, course in self.state.classes.items()
            if day is None or course.day == day
        ]

    def find_member(self, name: str) -> List[dict]:
        return [
            {
                "member_id": member_id,
                "name": member.name,
                "credits": member.credits,
                "booked": [k for k, course in self.state.classes.items() if member_id in course.booked],
            }
            for member_id, member in self.state.members.items()
            if name.lower() in member.name.lower()
        ]

    def book_class(self, class_id: str, member_id: str) -> dict:
        course, member = self._course(class_id), self._member(member_id)
        if member_id in course.booked or member_id in course.waiting:
            raise ValueError(f"{member.name} is on the list of {class_id} already; nothing to book")
        clash = self._clash(member_id, course)
        if clash is not None:
            raise ValueError(f"{member.name} has {clash} at that time; cancel_class it first")
        if member.credits < 1:
            raise ValueError(f"{member.name} has no credits; add_credits first")
        # A credit is taken for a place on the waiting list, too, and comes back when it is given up.
        member.credits -= 1
        if len(course.booked) < course.places:
            course.booked.append(member_id)
            return {"class_id": class_id, "place": "booked"}
        course.waiting.append(member_id)
        return {"class_id": class_id, "place": "waiting", "position": len(course.waiting)}

    def cancel_class(self, class_id: str, member_id: str) -> dict:
        course, member = self._course(class_id), self._member(member_id)
        moved = None
        if member_id in course.waiting:
            course.waiting.remove(member_id)
        elif member_id in course.booked:
            course.booked.remove(member_id)
            if course.waiting and len(course.booked) < course.places:
                moved = course.waiting.pop(0)
                course.booked.append(moved)
        else:
            raise ValueError(f"{member.name} is not on the list of {class_id}; find_member shows their classes")
        member.credits += 1
        return {"class_id": class_id, "moved_up": moved}

    def add_credits(self, member_id: str, count: int) -> dict:
        member = self._member(member_id)
        member.credits += count
        return {"member_id": member_id, "credits": member.credits}

    def set_places(self, class_id: str, places: int) -> dict:
        course = self._course(class_id)
        if places < len(course.booked):
            raise ValueError(f"{len(course.booked)} members have places in {class_id}; give that many or more")
        course.places = places
        while course.waiting and len(course.booked) < places:
            course.booked.append(course.waiting.pop(0))
        return {"class_id": class_id, "places": places, "booked": len(course.booked)}


def _minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)


mcp = FastMCP(name="Gym")
api = Gym()


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
def list_classes(day: Optional[Day] = None) -> List[dict]:
    """Classes of a day, or of the week."""
    return api.list_classes(day)


@mcp.tool()
def find_member(name: str) -> List[dict]:
    """Members by a part of their name, with credits and classes."""
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_member(name.strip())


@mcp.tool()
def book_class(class_id: str, member_id: str) -> dict:
    """Book a place for one credit; in a full class one waits."""
    return api.book_class(class_id, member_id)


@mcp.tool()
def cancel_class(class_id: str, member_id: str) -> dict:
    """Give up a place; the credit comes back."""
    return api.cancel_class(class_id, member_id)


@mcp.tool()
def add_credits(member_id: str, count: int) -> dict:
    """Sell 1 to 50 credits to a member."""
    if not 1 <= count <= 50:
        raise ValueError(f"count is {count}; sell 1 to 50")
    return api.add_credits(member_id, count)


@mcp.tool()
def set_places(class_id: str, places: int) -> dict:
    """Change how many may come to a class."""
    if places < 1:
        raise ValueError(f"places is {places}; a class has at least 1")
    return api.set_places(class_id, places)


if __name__ == "__main__":
    mcp.run()
