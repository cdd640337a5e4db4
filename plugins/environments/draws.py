"""The material that templates draw from, and the part of a task that one gives.

A template takes a draw and the name of the person it is about, and gives one environment's part of a task. States are
kept to two or three entities, because a small model has to read the question and the tools' schemas in one context. The
calls need only what the question says or an earlier call answers, and none depends on the seed of the episode.
"""

import random
from typing import NamedTuple

PEOPLE = """
Ada Brandt, Boris Kovac, Carla Mendes, Dario Conti, Edith Moller, Farid Nasser, Gwen Price, Henrik Aas, Ines
Duarte, Jonas Vogel, Kira Sato, Lars Winter, Mina Rao, Nils Berger, Oona Laine, Pavel Horak, Rosa Vidal,
Stefan Jung, Tara Quinn, Umar Diallo, Viola Ricci, Wim Peeters, Yara Haddad, Zoe Lambert
""".strip().replace("\n", " ").split(", ")


class Part(NamedTuple):
    """One environment's share of a task."""

    name: str
    scenario: dict
    text: str
    calls: list


class Draw(random.Random):
    """Draws that templates need."""

    def ids(self, prefix, count=2):
        return [f"{prefix}{number}" for number in self.sample(range(10, 100), count)]

    def two(self, values):
        return self.sample(list(values), 2)

    def somebody_but(self, person):
        return self.choice([other for other in PEOPLE if other != person])

    def day(self):
        return f"2026-0{self.randint(3, 9)}-{self.randint(10, 28)}"


def shuffled(draw, entries):
    """The same dictionary in a drawn order, so that the right entity is not always the first."""
    keys = list(entries)
    draw.shuffle(keys)
    return {key: entries[key] for key in keys}
