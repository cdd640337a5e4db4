"""A chess club's ledger: ratings, games, fees, and evenings whose pairings are drawn by chance."""

import random
from typing import Dict, List, Literal, Optional

from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

GREATEST_CHANGE = 24
DEBT_LIMIT = 3000
SCORE = {"1-0": 1.0, "0-1": 0.0, "1/2": 0.5}


class Player(BaseModel):
    """A member of the club."""

    name: str = Field(..., min_length=1, description="Full name")
    rating: int = Field(default=1200, ge=100, le=3500, description="Elo rating")
    points: float = Field(default=0.0, ge=0, description="Points of the season: 1 a win, a half a draw")
    owes: int = Field(default=0, ge=0, description="Cents of membership fees not yet paid")
    resting: bool = Field(default=False, description="Whether they sit out the evenings")


class Game(BaseModel):
    """A game that was played."""

    white: str = Field(..., description="Key in players")
    black: str = Field(..., description="Key in players")
    result: Literal["1-0", "0-1", "1/2"] = Field(..., description="As white's to black's score")
    change: int = Field(..., description="What white's rating gained and black's lost")


class ChessClubScenario(BaseModel):
    """Players, games of the season and tonight's pairings."""

    players: Dict[str, Player] = Field(default_factory=dict, description="Players by id")
    games: List[Game] = Field(default_factory=list, description="Games, oldest first")
    pairings: List[List[str]] = Field(default_factory=list, description="Tonight's boards: white, black")
    bye: Optional[str] = Field(default=None, description="Who has no board tonight")


Scenario_Schema = [Player, Game, ChessClubScenario]


def elo_change(white: int, black: int, score: float) -> int:
    """What white gains, by Elo's formula with K = 24."""
    expected = 1 / (1 + 10 ** ((black - white) / 400))
    return round(GREATEST_CHANGE * (score - expected))


class ChessClub:
    """The state and its rules; a method that raises has changed nothing and drawn nothing."""

    def __init__(self):
        self.state = ChessClubScenario()

    def load_scenario(self, scenario: dict) -> None:
        state = ChessClubScenario(**scenario)
        named = [side for game in state.games for side in (game.white, game.black)]
        named += [side for board in state.pairings for side in board]
        for player_id in named + [state.bye] * (state.bye is not None):
            if player_id not in state.players:
                raise ValueError(f"a game, pairing or bye names {player_id!r}, who is not in players; add them")
        self.state = state

    def save_scenario(self) -> dict:
        return self.state.model_dump()

    def _player(self, player_id: str) -> Player:
        if player_id not in self.state.players:
            raise ValueError(f"no player {player_id!r}; find_player gives the ids")
        return self.state.players[player_id]

    def find_player(self, name: str) -> List[dict]:
        return [
            {"player_id": player_id, **player.model_dump()}
            for player_id, player in self.state.players.items()
            if name.lower() in player.name.lower()
        ]

    def standings(self, top: int) -> List[dict]:
        players = sorted(self.state.players.items(), key=lambda item: (-item[1].points, -item[1].rating, item[0]))
        return [{"player_id": k, "name": p.name, "points": p.points, "rating": p.rating} for k, p in players[:top]]

    def record_game(self, white: str, black: str, result: str) -> dict:
        if white == black:
            raise ValueError(f"{white} cannot play themselves; name two players")
        first, second = self._player(white), self._player(black)
        if self.state.pairings and [white, black] not in self.state.pairings:
            raise ValueError(f"{white} against {black} is no board of tonight; draw_pairings lists them")
        change = elo_change(first.rating, second.rating, SCORE[result])
        first.rating = min(3500, max(100, first.rating + change))
        second.rating = min(3500, max(100, second.rating - change))
        first.points += SCORE[result]
        second.points += 1 - SCORE[result]
        self.state.games.append(Game(white=white, black=black, result=result, change=change))
        if [white, black] in self.state.pairings:
            self.state.pairings.remove([white, black])
        return {"white": first.rating, "black": second.rating, "change": change}

    def draw_pairings(self) -> dict:
        if self.state.pairings:
            raise ValueError(f"{len(self.state.pairings)} boards are still open; record_game them first")
        ready = [k for k, p in self.state.players.items() if not p.resting and p.owes <= DEBT_LIMIT]
        if len(ready) < 2:
            raise ValueError("fewer than two players may play; set_resting or pay_fee some of them")
        random.shuffle(ready)
        self.state.bye = ready.pop() if len(ready) % 2 else None
        self.state.pairings = [ready[i : i + 2] for i in range(0, len(ready), 2)]
        return {"pairings": self.state.pairings, "bye": self.state.bye}

    def set_resting(self, player_id: str, resting: bool) -> dict:
        player = self._player(player_id)
        if resting and any(player_id in board for board in self.state.pairings):
            raise ValueError(f"{player_id} has a board tonight; record_game it first")
        player.resting = resting
        return {"player_id": player_id, "resting": resting}

    def charge_fee(self, player_id: str, cents: int) -> dict:
        player = self._player(player_id)
        player.owes += cents
        return {"player_id": player_id, "owes": player.owes}

    def pay_fee(self, player_id: str, cents: int) -> dict:
        player = self._player(player_id)
        if cents > player.owes:
            raise ValueError(f"{player.name} owes {player.owes} cents; pay that or less")
        player.owes -= cents
        return {"player_id": player_id, "owes": player.owes}


mcp = FastMCP(name="ChessClub")
api = ChessClub()


def _cents(cents: int) -> int:
    if cents < 1:
        raise ValueError(f"cents is {cents}; give at least 1")
    return cents


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
def find_player(name: str) -> List[dict]:
    """Players by a part of their name.

    Args:
        name: a part of it
    """
    if not name.strip():
        raise ValueError("name is empty; give a part of it")
    return api.find_player(name.strip())


@mcp.tool()
def standings(top: int = 10) -> List[dict]:
    """The table of the season, best first.

    Args:
        top: how many rows
    """
    if top < 1:
        raise ValueError(f"top is {top}; ask for at least 1 row")
    return api.standings(top)


@mcp.tool()
def record_game(white: str, black: str, result: Literal["1-0", "0-1", "1/2"]) -> dict:
    """Enter a game and change both ratings; on a drawn evening only its boards count.

    Args:
        white: player id
        black: player id
        result: 1-0 is a win for white, 1/2 a draw
    """
    return api.record_game(white, black, result)


@mcp.tool()
def draw_pairings() -> dict:
    """Draw tonight's boards among those who do not rest and owe 3000 cents at most."""
    return api.draw_pairings()


@mcp.tool()
def set_resting(player_id: str, resting: bool) -> dict:
    """Let a player sit out the evenings, or come back.

    Args:
        player_id: the player
        resting: true to sit out
    """
    return api.set_resting(player_id, resting)


@mcp.tool()
def charge_fee(player_id: str, cents: int) -> dict:
    """Charge a membership fee.

    Args:
        player_id: the player
        cents: how much
    """
    return api.charge_fee(player_id, _cents(cents))


@mcp.tool()
def pay_fee(player_id: str, cents: int) -> dict:
    """Enter a payment of what a player owes.

    Args:
        player_id: the player
        cents: how much
    """
    return api.pay_fee(player_id, _cents(cents))


if __name__ == "__main__":
    mcp.run()
