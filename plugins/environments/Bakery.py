"""A bakery's order book: products, trays in the oven for each day, advance payment and hand-over."""

from typing import Dict, List, Literal

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

DAYS_AHEAD = 7


class Product(BaseModel):
    """Something that is baked to order."""

    name: str = Field(..., min_length=1, description="What it is called")
    price: int = Field(..., gt=0, description="Cents a piece")
    per_tray: int = Field(default=10, gt=0, description="Pieces that fit on one tray")


class Order(BaseModel):
    """What somebody wants on a day."""

    customer: str = Field(..., min_length=1, description="Who ordered")
    day: int = Field(..., ge=0, description="Day of hand-over")
    items: Dict[str, int] = Field(default_factory=dict, description="Pieces by product id")
    paid: int = Field(default=0, ge=0, description="Cents paid so far")
    status: Literal["open", "done", "cancelled"] = Field(default="open", description="Where it stands")


class BakeryScenario(BaseModel):
    """Products, orders and the oven."""

    products: Dict[str, Product] = Field(default_factory=dict, description="Products by id")
    orders: Dict[str, Order] = Field(default_factory=dict, description="Orders by id")
    trays: int = Field(default=8, ge=0, description="Trays the oven takes a day")
    today: int = Field(default=1, ge=0, description="Today's number; days are counted from 0")
    next_order: int = Field(default=1, ge=1, description="Number of the next order")


Scenario_Schema = [Product, Order, BakeryScenario]


class Bakery:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = BakeryScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = BakeryScenario(**scenario)
        for order_id, order in state.orders.items():
            for product_id in order.items:
                if product_id not in state.products:
                    raise ValueError(f"order {order_id} has {product_id!r}, which is not in products; add it there")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _product(self, product_id: str) -> Product:
        if product_id not in self.state.products:
            raise ValueError(f"no product {product_id!r}; find_products gives the ids")
        return self.state.products[product_id]

    def _open(self, order_id: str) -> Order:
        if order_id not in self.state.orders:
            raise ValueError(f"no order {order_id!r}; find_orders gives the ids")
        order = self.state.orders[order_id]
        if order.status != "open":
            raise ValueError(f"{order_id} is {order.status}; only open orders can be changed")
        return order

    def _total(self, order: Order) -> int:
        return sum(self.state.products[k].price * count for k, count in order.items.items())

    def _trays(self, items: Dict[str, int]) -> int:
        # A tray takes one product only, so each is rounded up by itself.
        return sum(-(-count // self.state.products[k].per_tray) for k, count in items.items())

    def find_products(self, text: str) -> List[dict]:
        return [
            {"product_id": product_id, **product.model_dump()}
            for product_id, product in self.state.products.items()
            if text.lower() in product.name.lower()
        ]

    def find_orders(self, customer: str) -> List[dict]:
        return [
            {"order_id": order_id, **order.model_dump(), "total": self._total(order)}
            for order_id, order in self.state.orders.items()
            if customer.lower() in order.customer.lower()
        ]

    def free_trays(self, day: int) -> int:
        orders = [o for o in self.state.orders.values() if o.day == day and o.status != "cancelled"]
        return self.state.trays - sum(self._trays(order.items) for order in orders)

    def open_order(self, customer: str, day: int) -> dict:
        first, last = self.state.today + 1, self.state.today + DAYS_AHEAD
        if not first <= day <= last:
            raise ValueError(f"day {day} is too soon or too late; order for day {first} to {last}")
        order_id = f"O{self.state.next_order}"
        self.state.orders[order_id] = Order(customer=customer, day=day)
        self.state.next_order += 1
        return {"order_id": order_id}

    def set_item(self, order_id: str, product_id: str, count: int) -> dict:
        order = self._open(order_id)
        self._product(product_id)
        if order.day <= self.state.today:
            raise ValueError(f"{order_id} is for today or earlier and the dough is made; it stays as it is")
        items = {k: n for k, n in {**order.items, product_id: count}.items() if n > 0}
        free = self.free_trays(order.day) + self._trays(order.items)
        if self._trays(items) > free:
            raise ValueError(f"{order_id} would need {self._trays(items)} trays; day {order.day} has {free} for it")
        order.items = items
        return {"order_id": order_id, "total": self._total(order), "paid": order.paid}

    def pay(self, order_id: str, cents: int) -> dict:
        order = self._open(order_id)
        owed = self._total(order) - order.paid
        if cents > owed:
            raise ValueError(f"{max(0, owed)} cents of {order_id} are unpaid; pay that or less")
        order.paid += cents
        return {"order_id": order_id, "unpaid": owed - cents}

    def hand_over(self, order_id: str) -> dict:
        order = self._open(order_id)
        if order.day != self.state.today:
            raise ValueError(f"{order_id} is for day {order.day} and today is {self.state.today}; it is not baked")
        owed = self._total(order) - order.paid
        if owed > 0:
            raise ValueError(f"{owed} cents of {order_id} are unpaid; pay them first")
        order.status = "done"
        return {"order_id": order_id, "items": dict(order.items)}

    def cancel_order(self, order_id: str) -> dict:
        order = self._open(order_id)
        if order.day <= self.state.today:
            raise ValueError(f"{order_id} is for day {order.day} and baked by now; it cannot be cancelled")
        back, order.paid, order.status = order.paid, 0, "cancelled"
        return {"order_id": order_id, "refund": back}


mcp = FastMCP(name="Bakery")
api = Bakery()


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
def find_products(text: str) -> List[dict]:
    """Products by a part of their name."""
    if not text.strip():
        raise ValueError("text is empty; give a part of the name")
    return api.find_products(text.strip())


@mcp.tool()
def find_orders(customer: str) -> List[dict]:
    """Orders by a part of the customer's name."""
    if not customer.strip():
        raise ValueError("customer is empty; give a part of the name")
    return api.find_orders(customer.strip())


@mcp.tool()
def open_order(customer: str, day: int) -> dict:
    """Begin an empty order for one of the next 7 days."""
    if not customer.strip():
        raise ValueError("customer is empty; say who orders")
    return api.open_order(customer.strip(), day)


@mcp.tool()
def set_item(order_id: str, product_id: str, count: int) -> dict:
    """Set how many pieces of a product an order has; 0 removes it."""
    if count < 0:
        raise ValueError(f"count is {count}; give 0 or more")
    return api.set_item(order_id, product_id, count)


@mcp.tool()
def pay(order_id: str, cents: int) -> dict:
    """Pay a part of an order, or all of it."""
    if cents < 1:
        raise ValueError(f"cents is {cents}; pay at least 1")
    return api.pay(order_id, cents)


@mcp.tool()
def hand_over(order_id: str) -> dict:
    """Hand today's paid order to its customer."""
    return api.hand_over(order_id)


@mcp.tool()
def cancel_order(order_id: str) -> dict:
    """Cancel an order that is not baked yet."""
    return api.cancel_order(order_id)


if __name__ == "__main__":
    mcp.run()
