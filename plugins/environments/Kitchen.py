"""A canteen's kitchen: stock with best-before days, recipes that use it up, and a shopping list."""

from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Ingredient(BaseModel):
    """What is on the shelf."""

    amount: int = Field(..., ge=0, description="How much, in its unit")
    unit: Literal["g", "ml", "piece"] = Field(default="g", description="Unit of the amount")
    best_before: Optional[int] = Field(default=None, ge=0, description="Last good day; none if it keeps")


class Recipe(BaseModel):
    """What one portion takes."""

    title: str = Field(..., min_length=1, description="Name of the dish")
    needs: Dict[str, int] = Field(..., min_length=1, description="Amount of each ingredient for one portion")
    allergens: List[str] = Field(default_factory=list, description="Allergens to be declared")


class Meal(BaseModel):
    """A dish that was cooked and not yet eaten."""

    recipe_id: str = Field(..., description="Key in recipes")
    portions: int = Field(..., ge=0, description="Portions left")


class KitchenScenario(BaseModel):
    """Shelf, recipes and what is ready."""

    stock: Dict[str, Ingredient] = Field(default_factory=dict, description="Ingredients by name")
    recipes: Dict[str, Recipe] = Field(default_factory=dict, description="Recipes by id")
    ready: List[Meal] = Field(default_factory=list, description="Cooked meals, oldest first")
    shopping: Dict[str, int] = Field(default_factory=dict, description="Amounts to be bought")
    today: int = Field(default=1, ge=0, description="Today's number; days are counted from 0")


Scenario_Schema = [Ingredient, Recipe, Meal, KitchenScenario]


class Kitchen:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = KitchenScenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = KitchenScenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _recipe(self, recipe_id: str) -> Recipe:
        if recipe_id not in self.state.recipes:
            raise ValueError(f"no recipe {recipe_id!r}; find_recipes gives the ids")
        return self.state.recipes[recipe_id]

    def _spoiled(self, name: str) -> bool:
        day = self.state.stock[name].best_before
        return day is not None and day < self.state.today

    def _usable(self, name: str) -> int:
        if name not in self.state.stock or self._spoiled(name):
            return 0
        return self.state.stock[name].amount

    def list_stock(self) -> List[dict]:
        return [
            {"ingredient": name, "spoiled": self._spoiled(name), **item.model_dump()}
            for name, item in self.state.stock.items()
        ]

    def find_recipes(self, text: str, without: Optional[str]) -> List[dict]:
        text = text.lower()
        return [
            {"recipe_id": recipe_id, **recipe.model_dump()}
            for recipe_id, recipe in self.state.recipes.items()
            if (text in recipe.title.lower() or text in recipe.needs) and without not in recipe.allergens
        ]

    def missing_for(self, recipe_id: str, portions: int) -> Dict[str, int]:
        needs = self._recipe(recipe_id).needs
        gaps = {name: amount * portions - self._usable(name) for name, amount in needs.items()}
        return {name: gap for name, gap in gaps.items() if gap > 0}

    def cook(self, recipe_id: str, portions: int) -> dict:
        missing = self.missing_for(recipe_id, portions)
        if missing:
            lacks = ", ".join(f"{amount} of {name}" for name, amount in missing.items())
            raise ValueError(f"not enough on the shelf: {lacks} missing; cook fewer portions or add_stock first")
        for name, amount in self._recipe(recipe_id).needs.items():
            self.state.stock[name].amount -= amount * portions
        self.state.ready.append(Meal(recipe_id=recipe_id, portions=portions))
        return {"recipe_id": recipe_id, "portions": portions}

    def serve(self, recipe_id: str, portions: int) -> dict:
        self._recipe(recipe_id)
        meals = [meal for meal in self.state.ready if meal.recipe_id == recipe_id]
        have = sum(meal.portions for meal in meals)
        if portions > have:
            raise ValueError(f"{have} portions of {recipe_id} are ready; serve that or cook more")
        left = portions
        for meal in meals:
            taken = min(left, meal.portions)
            meal.portions -= taken
            left -= taken
        self.state.ready = [meal for meal in self.state.ready if meal.portions > 0]
        return {"recipe_id": recipe_id, "left": have - portions}

    def add_stock(self, ingredient: str, amount: int, best_before: Optional[int]) -> dict:
        if ingredient not in self.state.stock:
            raise ValueError(f"no shelf for {ingredient!r}; list_stock gives the names")
        if best_before is not None and best_before < self.state.today:
            raise ValueError(f"{ingredient} is past its day {best_before}; today is {self.state.today}, send it back")
        item = self.state.stock[ingredient]
        if self._spoiled(ingredient) and item.amount > 0:
            raise ValueError(f"what is left of {ingredient} is spoiled; discard_spoiled before it is mixed")
        # The older day counts for all of it, once something old is left on the shelf.
        days = [day for day in (best_before, item.best_before if item.amount else None) if day is not None]
        item.best_before = min(days) if days else None
        item.amount += amount
        bought = self.state.shopping.get(ingredient, 0) - amount
        if bought > 0:
            self.state.shopping[ingredient] = bought
        else:
            self.state.shopping.pop(ingredient, None)
        return {"ingredient": ingredient, **item.model_dump()}

    def discard_spoiled(self) -> dict:
        thrown = {}
        for name, item in self.state.stock.items():
            if self._spoiled(name) and item.amount > 0:
                thrown[name] = item.amount
                item.amount = 0
        if not thrown:
            raise ValueError("nothing is spoiled; list_stock shows the days")
        return thrown

    def plan_shopping(self, recipe_id: str, portions: int) -> dict:
        missing = self.missing_for(recipe_id, portions)
        if not missing:
            raise ValueError(f"all for {portions} portions of {recipe_id} is on the shelf; cook it")
        for name, gap in missing.items():
            self.state.shopping[name] = max(gap, self.state.shopping.get(name, 0))
        return dict(self.state.shopping)


mcp = FastMCP(name="Kitchen")
api = Kitchen()


def _portions(portions: int) -> int:
    if not 1 <= portions <= 200:
        raise ValueError(f"portions is {portions}; give 1 to 200")
    return portions


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
def list_stock() -> List[dict]:
    """The shelf: amounts, units, best-before days and what is spoiled."""
    return api.list_stock()


@mcp.tool()
def find_recipes(text: str, without: Optional[str] = None) -> List[dict]:
    """Recipes by a part of the title or an ingredient.

    Args:
        text: what to look for
        without: an allergen that must not be in it
    """
    if not text.strip():
        raise ValueError("text is empty; give a part of a title or an ingredient")
    return api.find_recipes(text.strip(), without)


@mcp.tool()
def missing_for(recipe_id: str, portions: int) -> Dict[str, int]:
    """What the shelf lacks for so many portions.

    Args:
        recipe_id: the recipe
        portions: 1 to 200
    """
    return api.missing_for(recipe_id, _portions(portions))


@mcp.tool()
def cook(recipe_id: str, portions: int) -> dict:
    """Cook portions from the shelf; they are ready afterwards.

    Args:
        recipe_id: the recipe
        portions: 1 to 200
    """
    return api.cook(recipe_id, _portions(portions))


@mcp.tool()
def serve(recipe_id: str, portions: int) -> dict:
    """Hand out ready portions, the oldest first.

    Args:
        recipe_id: the recipe
        portions: 1 to 200
    """
    return api.serve(recipe_id, _portions(portions))


@mcp.tool()
def add_stock(ingredient: str, amount: int, best_before: Optional[int] = None) -> dict:
    """Put a delivery on the shelf and strike it from the shopping list.

    Args:
        ingredient: its name on the shelf
        amount: in the shelf's unit
        best_before: last good day, if it spoils
    """
    if amount < 1:
        raise ValueError(f"amount is {amount}; add at least 1")
    return api.add_stock(ingredient, amount, best_before)


@mcp.tool()
def discard_spoiled() -> dict:
    """Throw away all that is past its day."""
    return api.discard_spoiled()


@mcp.tool()
def plan_shopping(recipe_id: str, portions: int) -> dict:
    """Put what a recipe lacks on the shopping list.

    Args:
        recipe_id: the recipe
        portions: 1 to 200
    """
    return api.plan_shopping(recipe_id, _portions(portions))


if __name__ == "__main__":
    mcp.run()
