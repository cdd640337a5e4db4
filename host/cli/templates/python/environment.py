"""A shelf of books that a model lends and takes back."""

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field


class Scenario(BaseModel):
    """The state. A task says in which state it begins."""

    books: dict[str, int] = Field(default_factory=dict, description="How many of each title are on the shelf")
    lent: dict[str, str] = Field(default_factory=dict, description="Who has which title, by name")


Scenario_Schema = [Scenario]


class Shelf:
    def __init__(self):
        self.state = Scenario()

    def load_scenario(self, scenario: dict) -> None:
        self.state = Scenario(**scenario)

    def save_scenario(self) -> dict:
        return self.state.model_dump()


api = Shelf()
mcp = FastMCP(name="NAME")


@mcp.tool()
def list_books() -> dict[str, int]:
    """Lists the titles on the shelf, with how many there are of each."""
    return api.state.books


@mcp.tool()
def lend(title: str, person: str) -> str:
    """Lends a book to a person, who may have one at a time."""
    # The model reads the text of an exception. A tool that raises must have changed nothing.
    if person in api.state.lent:
        raise ValueError(f"{person} has {api.state.lent[person]!r} already")
    if api.state.books.get(title, 0) == 0:
        raise ValueError(f"there is no {title!r} on the shelf; list_books has the titles")
    api.state.books[title] -= 1
    api.state.lent[person] = title
    return f"lent {title!r} to {person}"


@mcp.tool()
def take_back(person: str) -> str:
    """Takes back the book that a person has."""
    if person not in api.state.lent:
        raise ValueError(f"{person} has no book")
    title = api.state.lent.pop(person)
    api.state.books[title] = api.state.books.get(title, 0) + 1
    return f"took back {title!r} from {person}"
