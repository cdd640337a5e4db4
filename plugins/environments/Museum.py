"""A museum's ticket desk: timed slots with room for so many, orders, audio guides and closing days."""

from typing import Dict, List, Literal

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

PRICES = {"adults": 1200, "children": 400, "seniors": 800}
GUIDE_PRICE = 350
LARGEST_GROUP = 12


class Slot(BaseModel):
    """A time at which visitors may enter."""

    day: str = Field(..., pattern=r"^\d{4}-\d{2}-\d{2}$", description="Date, YYYY-MM-DD")
    time: str = Field(..., pattern=r"^[0-2]\d:[0-5]\d$", description="Time of entry, HH:MM")
    room: int = Field(default=50, ge=0, description="Visitors allowed, sold tickets included")


class Visitors(BaseModel):
    """How many of each kind."""

    adults: int = Field(default=0, ge=0, description="Adults")
    children: int = Field(default=0, ge=0, description="Children below 14")
    seniors: int = Field(default=0, ge=0, description="Visitors from 65 on")


class Order(BaseModel):
    """Tickets that were sold together."""

    slot_id: str = Field(..., description="Key in slots")
    name: str = Field(..., min_length=1, description="Who ordered")
    visitors: Visitors = Field(..., description="Who comes")
    guides: int = Field(default=0, ge=0, description="Audio guides lent with it")
    total: int = Field(default=0, ge=0, description="Price in cents")
    status: Literal["sold", "inside", "refunded"] = Field(default="sold", description="Where the order stands")


class MuseumScenario(BaseModel):
    """Slots, orders and the shelf of audio guides."""

    slots: Dict[str, Slot] = Field(default_factory=dict, description="Slots by id")
    orders: Dict[str, Order] = Field(default_factory=dict, description="Orders by id")
    closed: List[str] = Field(default_factory=list, description="Dates on which the house is shut")
    guides: int = Field(default=20, ge=0, description="Audio guides owned")
    next_order: int = Field(default=1, ge=1, description="Number of the next order")


Scenario_Schema = [Slot, Visitors, Order, MuseumScenario]


def _count(visitors: Visitors) -> int:
    return visitors.adults + visitors.children + visitors.seniors


class Museum:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = MuseumScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = MuseumScenario(**scenario)
        for order_id, order in state.orders.items():
            if order.slot_id not in state.slots:
                raise ValueError(f"order {order_id} is for {order.slot_id!r}, which is not in slots; add it there")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _order(self, order_id: str) -> Order:
        if order_id not in self.state.orders:
            raise ValueError(f"no order {order_id!r}; find_orders gives the ids")
        return self.state.orders[order_id]

    def _sold_order(self, order_id: str) -> Order:
        order = self._order(order_id)
        if order.status != "sold":
            raise ValueError(f"{order_id} is {order.status}; only sold orders can be changed")
        return order

    def _left(self, slot_id: str) -> int:
        orders = [o for o in self.state.orders.values() if o.slot_id == slot_id and o.status != "refunded"]
        return self.state.slots[slot_id].room - sum(_count(order.visitors) for order in orders)

    def _check_slot(self, slot_id: str, people: int) -> None:
        if slot_id not in self.state.slots:
            raise ValueError(f"no slot {slot_id!r}; list_slots gives the ids")
        slot = self.state.slots[slot_id]
        if slot.day in self.state.closed:
            raise ValueError(f"the museum is shut on {slot.day}; choose a slot of another day")
        if people > self._left(slot_id):
            raise ValueError(f"{slot_id} has room for {self._left(slot_id)} more; choose another slot")

    def list_slots(self, day: str) -> List[dict]:
        if day in self.state.closed:
            return []
        return [
            {"slot_id": slot_id, "time": slot.time, "left": self._left(slot_id)}
            for slot_id, slot in self.state.slots.items()
            if slot.day == day
        ]

    def find_orders(self, name: str) -> List[dict]:
        return [
            {"order_id": order_id, **order.model_dump()}
            for order_id, order in self.state.orders.items()
            if name.lower() in order.name.lower()
        ]

    def order_tickets(self, slot_id: str, name: str, adults: int, children: int, seniors: int) -> dict:
        visitors = Visitors(adults=adults, children=children, seniors=seniors)
        people = _count(visitors)
        if not 1 <= people <= LARGEST_GROUP:
            raise ValueError(f"the order is for {people}; order for 1 to {LARGEST_GROUP} people at a time")
        if children and adults + seniors == 0:
            raise ValueError("children come with a grown-up; add an adult or a senior")
        self._check_slot(slot_id, people)
        total = sum(PRICES[kind] * count for kind, count in visitors.model_dump().items())
        order_id = f"T{self.state.next_order}"
        self.state.orders[order_id] = Order(slot_id=slot_id, name=name, visitors=visitors, total=total)
        self.state.next_order += 1
        return {"order_id": order_id, "total": total}

    def add_guides(self, order_id: str, count: int) -> dict:
        order = self._sold_order(order_id)
        if order.guides + count > _count(order.visitors):
            raise ValueError(f"{order_id} is for {_count(order.visitors)} people; one guide each is the most")
        there = [o for o in self.state.orders.values() if o.slot_id == order.slot_id and o.status != "refunded"]
        lent = sum(other.guides for other in there)
        if lent + count > self.state.guides:
            raise ValueError(f"{self.state.guides - lent} guides are left in that slot; add that many or fewer")
        order.guides += count
        order.total += GUIDE_PRICE * count
        return {"order_id": order_id, "guides": order.guides, "total": order.total}

    def move_order(self, order_id: str, slot_id: str) -> dict:
        order = self._sold_order(order_id)
        if order.slot_id == slot_id:
            raise ValueError(f"{order_id} is for {slot_id} already; name another slot")
        if order.guides:
            raise ValueError(f"{order_id} has guides, which belong to its slot; refund_order it and order anew")
        self._check_slot(slot_id, _count(order.visitors))
        order.slot_id = slot_id
        return {"order_id": order_id, "slot_id": slot_id}

    def refund_order(self, order_id: str) -> dict:
        order = self._sold_order(order_id)
        order.status = "refunded"
        return {"order_id": order_id, "refund": order.total}

    def admit(self, order_id: str) -> dict:
        order = self._sold_order(order_id)
        if self.state.slots[order.slot_id].day in self.state.closed:
            raise ValueError(f"the museum is shut on the day of {order_id}; move_order or refund_order it")
        order.status = "inside"
        return {"order_id": order_id, "people": _count(order.visitors), "guides": order.guides}


mcp = FastMCP(name="Museum")
api = Museum()


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
def list_slots(day: str) -> List[dict]:
    """Slots of a day with the places left.

    Args:
        day: YYYY-MM-DD
    """
    return api.list_slots(day)


@mcp.tool()
def find_orders(name: str) -> List[dict]:
    """Orders by a part of the name.

    Args:
        name: a part of it
    """
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_orders(name.strip())


@mcp.tool()
def order_tickets(slot_id: str, name: str, adults: int = 0, children: int = 0, seniors: int = 0) -> dict:
    """Sell tickets for a slot, for twelve people at most.

    Args:
        slot_id: the slot
        name: who orders
        adults: 1200 cents each
        children: below 14, 400 cents each, never alone
        seniors: from 65 on, 800 cents each
    """
    if not name.strip():
        raise ValueError("name is empty; say who orders")
    if min(adults, children, seniors) < 0:
        raise ValueError("a count of visitors is negative; leave it out or give 0 or more")
    return api.order_tickets(slot_id, name.strip(), adults, children, seniors)


@mcp.tool()
def add_guides(order_id: str, count: int) -> dict:
    """Add audio guides to an order, 350 cents each.

    Args:
        order_id: the order
        count: at most one for each visitor
    """
    if count < 1:
        raise ValueError(f"count is {count}; add at least 1")
    return api.add_guides(order_id, count)


@mcp.tool()
def move_order(order_id: str, slot_id: str) -> dict:
    """Move an order without guides to another slot.

    Args:
        order_id: the order
        slot_id: the new slot
    """
    return api.move_order(order_id, slot_id)


@mcp.tool()
def refund_order(order_id: str) -> dict:
    """Take a sold order back and free its places.

    Args:
        order_id: the order
    """
    return api.refund_order(order_id)


@mcp.tool()
def admit(order_id: str) -> dict:
    """Let the visitors of an order in.

    Args:
        order_id: the order
    """
    return api.admit(order_id)


if __name__ == "__main__":
    mcp.run()
