"""A lending library: copies, members, loans with a due day, and fines for late returns."""

from typing import Dict, List

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

LOAN_DAYS = 14
FINE_PER_DAY = 20
FINE_LIMIT = 500


class Book(BaseModel):
    """A title and how many copies of it the library owns."""

    title: str = Field(..., min_length=1, description="Title of the book")
    author: str = Field(default="", description="Who wrote it")
    copies: int = Field(default=1, ge=0, description="Copies owned, lent ones included")


class Member(BaseModel):
    """Somebody with a library card."""

    name: str = Field(..., min_length=1, description="Full name")
    max_loans: int = Field(default=3, ge=1, description="Loans allowed at the same time")
    fine: int = Field(default=0, ge=0, description="Fine owed, in cents")


class Loan(BaseModel):
    """A copy that is out."""

    book_id: str = Field(..., description="Key in books")
    member_id: str = Field(..., description="Key in members")
    due: int = Field(..., ge=0, description="Last day without a fine")
    renewed: bool = Field(default=False, description="Whether the one renewal is used up")


class LibraryScenario(BaseModel):
    """Everything the library knows."""

    books: Dict[str, Book] = Field(default_factory=dict, description="Books by id")
    members: Dict[str, Member] = Field(default_factory=dict, description="Members by id")
    loans: Dict[str, Loan] = Field(default_factory=dict, description="Open loans by id")
    today: int = Field(default=1, ge=0, description="Today's number; days are counted from 0")
    next_loan: int = Field(default=1, ge=1, description="Number of the next loan")


Scenario_Schema = [Book, Member, Loan, LibraryScenario]


class Library:
    """The state and its rules; a method that raises has changed nothing."""

    def __init__(self):
        self.state = LibraryScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = LibraryScenario(**scenario)
        for loan_id, loan in state.loans.items():
            if loan.book_id not in state.books or loan.member_id not in state.members:
                raise ValueError(f"loan {loan_id} names a book or member that is not there; add it")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _member(self, member_id: str) -> Member:
        if member_id not in self.state.members:
            raise ValueError(f"no member {member_id!r}; find_member gives the ids")
        return self.state.members[member_id]

    def _loan(self, loan_id: str) -> Loan:
        if loan_id not in self.state.loans:
            raise ValueError(f"no open loan {loan_id!r}; list_loans gives the ids")
        return self.state.loans[loan_id]

    def _free(self, book_id: str) -> int:
        out = [loan for loan in self.state.loans.values() if loan.book_id == book_id]
        return self.state.books[book_id].copies - len(out)

    def find_books(self, text: str) -> List[dict]:
        text = text.lower()
        return [
            {"book_id": book_id, "title": book.title, "author": book.author, "free": self._free(book_id)}
            for book_id, book in self.state.books.items()
            if text in book.title.lower() or text in book.author.lower()
        ]

    def find_member(self, name: str) -> List[dict]:
        return [
            {"member_id": member_id, **member.model_dump()}
            for member_id, member in self.state.members.items()
            if name.lower() in member.name.lower()
        ]

    def list_loans(self, member_id: str) -> List[dict]:
        self._member(member_id)
        return [
            {"loan_id": loan_id, "title": self.state.books[loan.book_id].title, "due": loan.due}
            for loan_id, loan in self.state.loans.items()
            if loan.member_id == member_id
        ]

    def lend(self, book_id: str, member_id: str) -> dict:
        member = self._member(member_id)
        if book_id not in self.state.books:
            raise ValueError(f"no book {book_id!r}; find_books gives the ids")
        if member.fine > FINE_LIMIT:
            raise ValueError(f"{member.name} owes {member.fine} cents; pay_fine down to {FINE_LIMIT} first")
        held = self.list_loans(member_id)
        if len(held) >= member.max_loans:
            raise ValueError(f"{member.name} has all {member.max_loans} loans out; give_back one first")
        if self._free(book_id) < 1:
            raise ValueError(f"no copy of {book_id!r} is free; lend another book")
        loan_id = f"L{self.state.next_loan}"
        loan = Loan(book_id=book_id, member_id=member_id, due=self.state.today + LOAN_DAYS)
        self.state.loans[loan_id] = loan
        self.state.next_loan += 1
        return {"loan_id": loan_id, "due": loan.due}

    def renew(self, loan_id: str) -> dict:
        loan = self._loan(loan_id)
        if loan.renewed:
            raise ValueError(f"{loan_id} was renewed before; give_back is what is left")
        if loan.due < self.state.today:
            raise ValueError(f"{loan_id} was due on day {loan.due}; give_back it and pay the fine")
        loan.due += LOAN_DAYS
        loan.renewed = True
        return {"loan_id": loan_id, "due": loan.due}

    def give_back(self, loan_id: str) -> dict:
        loan = self._loan(loan_id)
        fine = max(0, self.state.today - loan.due) * FINE_PER_DAY
        self.state.members[loan.member_id].fine += fine
        del self.state.loans[loan_id]
        return {"loan_id": loan_id, "fine": fine}

    def pay_fine(self, member_id: str, cents: int) -> dict:
        member = self._member(member_id)
        if cents > member.fine:
            raise ValueError(f"{member.name} owes {member.fine} cents; pay that or less")
        member.fine -= cents
        return {"member_id": member_id, "fine": member.fine}


mcp = FastMCP(name="Library")
api = Library()


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
def find_books(text: str) -> List[dict]:
    """Books whose title or author has the text, with free copies."""
    if not text.strip():
        raise ValueError("text is empty; give a part of a title or author")
    return api.find_books(text.strip())


@mcp.tool()
def find_member(name: str) -> List[dict]:
    """Members by a part of their name."""
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_member(name.strip())


@mcp.tool()
def list_loans(member_id: str) -> List[dict]:
    """A member's open loans."""
    return api.list_loans(member_id)


@mcp.tool()
def lend(book_id: str, member_id: str) -> dict:
    """Lend a free copy for 14 days."""
    return api.lend(book_id, member_id)


@mcp.tool()
def renew(loan_id: str) -> dict:
    """Move a loan's due day by 14 days, once."""
    return api.renew(loan_id)


@mcp.tool()
def give_back(loan_id: str) -> dict:
    """Take a lent copy back; late days are fined."""
    return api.give_back(loan_id)


@mcp.tool()
def pay_fine(member_id: str, cents: int) -> dict:
    """Pay a part of a member's fine, or all of it."""
    if cents < 1:
        raise ValueError(f"cents is {cents}; pay at least 1")
    return api.pay_fine(member_id, cents)


if __name__ == "__main__":
    mcp.run()
