"""Writes `value/golden.jsonl`: pairs of values, as `values.py` encodes them, and whether CPython calls them equal.

    python3 golden.py > ../value/golden.jsonl
"""

import random
from json import dumps, loads

from values import encode

LEAVES = [
    None, True, False, 0, 1, -1, 2, 255, 2**53, 2**53 + 1, -(2**64), 10**30, 0.0, -0.0, 1.0, -1.0, 0.5, 0.1 + 0.2, 0.3,
    float(2**53), 1e30, float(10**30), float("inf"), float("-inf"), 1j, 1 + 0j, 0j, 2 + 0.5j, "", "a", "b", "1", "é",
    "\ud800", b"", b"a", bytearray(b"a"), ...,
]


def value(rng, depth):
    kind = rng.randrange(7) if depth else 0
    if kind < 2:
        return rng.choice(LEAVES)
    items = [value(rng, depth - 1) for _ in range(rng.randrange(3))]
    if kind == 2:
        return items
    if kind == 3:
        return tuple(items)
    try:
        if kind == 4:
            return {item: value(rng, depth - 1) for item in items}
        return (set if kind == 5 else frozenset)(items)
    except TypeError:
        return items


def variant(rng, value):
    """The same value, or one that is hard to tell from it."""
    kind = type(value)
    if kind in (list, tuple):
        items = [variant(rng, item) for item in value]
        return rng.choice([kind, kind, kind, list, tuple])(items)
    if kind is dict:
        items = list(value.items())
        rng.shuffle(items)
        return {key: variant(rng, item) for key, item in items}
    if kind in (set, frozenset):
        return rng.choice([set, frozenset])(value)
    same = [leaf for leaf in LEAVES if leaf == value]
    return rng.choice(same if rng.random() < 0.95 else LEAVES)


def main():
    rng = random.Random(7)
    for left in LEAVES:
        for right in rng.sample(LEAVES, 12) + [leaf for leaf in LEAVES if leaf == left]:
            print(dumps([loads(encode(left)), loads(encode(right)), left == right], separators=(",", ":")))
    for _ in range(700):
        left = value(rng, 3)
        right = variant(rng, left) if rng.random() < 0.8 else value(rng, 3)
        print(dumps([loads(encode(left)), loads(encode(right)), left == right], separators=(",", ":")))


main()
