"""A ferry line: sailings with seats and deck space, and bookings that can be moved or cancelled."""

from typing import Dict, List, Literal

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

DECK_METRES = {"none": 0, "bicycle": 1, "car": 5, "van": 8}
VEHICLE_PRICE = {"none": 0, "bicycle": 300, "car": 2400, "van": 3900}


class Sailing(BaseModel):
    """One crossing."""

    origin: str = Field(..., min_length=1, description="Port of departure")
    destination: str = Field(..., min_length=1, description="Port of arrival")
    departs: str = Field(..., pattern=r"^[0-2]\d:[0-5]\d$", description="Time of departure, HH:MM")
    seats: int = Field(default=100, ge=0, description="Seats, booked ones included")
    deck: int = Field(default=40, ge=0, description="Metres of vehicle deck, booked ones included")
    fare: int = Field(default=1000, ge=0, description="Cents for each passenger")
    status: Literal["open", "boarding", "cancelled"] = Field(default="open", description="Only open ones take bookings")


class Booking(BaseModel):
    """Places on a sailing."""

    sailing_id: str = Field(..., description="Key in sailings")
    name: str = Field(..., min_length=1, description="Who booked")
    passengers: int = Field(..., ge=1, le=9, description="How many people")
    vehicle: Literal["none", "bicycle", "car", "van"] = Field(default="none", description="The one vehicle they bring")
    paid: int = Field(default=0, ge=0, description="Cents paid")


class FerryScenario(BaseModel):
    """The day's sailings and the book of bookings."""

    sailings: Dict[str, Sailing] = Field(default_factory=dict, description="Sailings by id")
    bookings: Dict[str, Booking] = Field(default_factory=dict, description="Bookings by id")
    refunded: int = Field(default=0, ge=0, description="Cents paid back today")
    next_booking: int = Field(default=1, ge=1, description="Number of the next booking")


Scenario_Schema = [Sailing, Booking, FerryScenario]


class Ferry:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = FerryScenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = FerryScenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _sailing(self, sailing_id: str) -> Sailing:
        if sailing_id not in self.state.sailings:
            raise ValueError(f"no sailing {sailing_id!r}; find_sailings gives the ids")
        return self.state.sailings[sailing_id]

    def _booking(self, booking_id: str) -> Booking:
        if booking_id not in self.state.bookings:
            raise ValueError(f"no booking {booking_id!r}; find_bookings gives the ids")
        return self.state.bookings[booking_id]

    def _left(self, sailing_id: str) -> dict:
        sailing = self.state.sailings[sailing_id]
        booked = [b for b in self.state.bookings.values() if b.sailing_id == sailing_id]
        return {
            "seats": sailing.seats - sum(b.passengers for b in booked),
            "deck": sailing.deck - sum(DECK_METRES[b.vehicle] for b in booked),
        }

    def _check_room(self, sailing_id: str, passengers: int, vehicle: str) -> int:
        """The price of a booking that fits; raises for one that does not."""
        sailing = self._sailing(sailing_id)
        if sailing.status != "open":
            raise ValueError(f"sailing {sailing_id} is {sailing.status}; choose an open one")
        left = self._left(sailing_id)
        if passengers > left["seats"]:
            raise ValueError(f"sailing {sailing_id} has {left['seats']} seats left; choose another or fewer people")
        if DECK_METRES[vehicle] > left["deck"]:
            raise ValueError(f"sailing {sailing_id} has {left['deck']} metres of deck left; choose another")
        return passengers * sailing.fare + VEHICLE_PRICE[vehicle]

    def find_sailings(self, origin: str, destination: str) -> List[dict]:
        wanted = (origin.lower(), destination.lower())
        return [
            {
                "sailing_id": sailing_id,
                "departs": sailing.departs,
                "fare": sailing.fare,
                "status": sailing.status,
                **self._left(sailing_id),
            }
            for sailing_id, sailing in self.state.sailings.items()
            if (sailing.origin.lower(), sailing.destination.lower()) == wanted
        ]

    def find_bookings(self, name: str) -> List[dict]:
        return [
            {"booking_id": booking_id, **booking.model_dump()}
            for booking_id, booking in self.state.bookings.items()
            if name.lower() in booking.name.lower()
        ]

    def book(self, sailing_id: str, name: str, passengers: int, vehicle: str) -> dict:
        price = self._check_room(sailing_id, passengers, vehicle)
        booking_id = f"F{self.state.next_booking}"
        self.state.bookings[booking_id] = Booking(
            sailing_id=sailing_id, name=name, passengers=passengers, vehicle=vehicle, paid=price
        )
        self.state.next_booking += 1
        return {"booking_id": booking_id, "paid": price}

    def move_booking(self, booking_id: str, sailing_id: str) -> dict:
        booking = self._booking(booking_id)
        if booking.sailing_id == sailing_id:
            raise ValueError(f"{booking_id} is for {sailing_id} already; name another sailing")
        old, new = self._sailing(booking.sailing_id), self._sailing(sailing_id)
        if (old.origin, old.destination) != (new.origin, new.destination):
            raise ValueError(f"{sailing_id} is another route; cancel_booking and book instead")
        price = self._check_room(sailing_id, booking.passengers, booking.vehicle)
        back = max(0, booking.paid - price)
        self.state.refunded += back
        booking.sailing_id, booking.paid = sailing_id, price
        return {"booking_id": booking_id, "paid": price, "refund": back}

    def cancel_booking(self, booking_id: str) -> dict:
        booking = self._booking(booking_id)
        sailing = self._sailing(booking.sailing_id)
        if sailing.status == "boarding":
            raise ValueError(f"sailing {booking.sailing_id} is boarding; {booking_id} cannot be cancelled any more")
        # The line keeps a tenth, unless it was the line that cancelled.
        back = booking.paid if sailing.status == "cancelled" else booking.paid * 9 // 10
        self.state.refunded += back
        del self.state.bookings[booking_id]
        return {"booking_id": booking_id, "refund": back}


mcp = FastMCP(name="Ferry")
api = Ferry()


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
def find_sailings(origin: str, destination: str) -> List[dict]:
    """Sailings between two ports, with seats and metres of deck left."""
    if not origin.strip() or not destination.strip():
        raise ValueError("origin or destination is empty; name both ports")
    return api.find_sailings(origin.strip(), destination.strip())


@mcp.tool()
def find_bookings(name: str) -> List[dict]:
    """Bookings by a part of the name."""
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_bookings(name.strip())


@mcp.tool()
def book(
    sailing_id: str, name: str, passengers: int, vehicle: Literal["none", "bicycle", "car", "van"] = "none"
) -> dict:
    """Book an open sailing for 1 to 9 passengers and at most one vehicle."""
    if not name.strip():
        raise ValueError("name is empty; say who books")
    if not 1 <= passengers <= 9:
        raise ValueError(f"passengers is {passengers}; book for 1 to 9")
    return api.book(sailing_id, name.strip(), passengers, vehicle)


@mcp.tool()
def move_booking(booking_id: str, sailing_id: str) -> dict:
    """Move a booking to another sailing of its route."""
    return api.move_booking(booking_id, sailing_id)


@mcp.tool()
def cancel_booking(booking_id: str) -> dict:
    """Cancel a booking and pay back nine tenths, or all if the sailing is off."""
    return api.cancel_booking(booking_id)


if __name__ == "__main__":
    mcp.run()
