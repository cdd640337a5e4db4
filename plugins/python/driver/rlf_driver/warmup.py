"""Programs that run before the snapshot is taken, several times each.

The interpreter specialises code as it runs and fills caches of many kinds. What is warm in the snapshot is warm in every
run, and costs it neither time nor pages of memory that it would have to copy. None of them leaves anything behind that a
program could notice.
"""

PROGRAMS = (
    "print(1 + 1)\n",
    "import sys\nfor line in sys.stdin:\n    print(line.strip().upper(), file=sys.stderr)\n",
    "name = input()\nprint(f'{name!r:>10} {3.14159:.2f} {12345:,}', end='!\\n')\n",
    """\
import json
import re
text = json.dumps({"a": [1, 2.5, None, True, "\\u00e9"], "b": {"c": -1e-7}}, indent=1, sort_keys=True)
assert json.loads(text)["a"][0] == 1
print(re.findall(r"(\\w+)=(\\d+)", "a=1, b=22"), re.sub(r"\\s+", " ", "x   y"))
try:
    json.loads("{")
except json.JSONDecodeError as error:
    print(error)
""",
    """\
from typing import Any, Dict, List, Optional, Tuple


def close(numbers: List[float], threshold: float) -> bool:
    \"\"\" Are two of them closer than that?
    >>> close([1.0, 2.0], 0.5)
    False
    \"\"\"
    for i, a in enumerate(numbers):
        for j, b in enumerate(numbers):
            if i != j and abs(a - b) < threshold:
                return True
    return False


def check(candidate):
    assert candidate([1.0, 7.5, 7.75, 3.0], 0.5) == True
    assert candidate([1.0, 7.5, 8.75, 3.0], 0.5) == False


check(close)
""",
    """\
from collections import Counter, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
import functools
import heapq
import itertools
import math


@dataclass(order=True)
class Node:
    cost: int
    name: str = field(compare=False)


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


graph = defaultdict(list)
graph["a"].append(("b", 1))
queue = [Node(0, "a")]
while queue:
    node = heapq.heappop(queue)
    for name, cost in graph[node.name]:
        heapq.heappush(queue, Node(node.cost + cost, name))
Point = namedtuple("Point", "x y")
print(fib(30), Counter("mississippi").most_common(2), deque([1, 2, 3], maxlen=2), Point(1, 2), math.gcd(12, 18))
print(sorted({"b": 1, "a": 2}.items(), key=lambda pair: pair[1]), list(itertools.combinations(range(4), 2)))
print(sum(x * x for x in range(10)), {x: x % 3 for x in range(5)}, [*zip("ab", (1, 2))], "-".join(map(str, range(3))))
""",
    """\
class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    @property
    def top(self):
        return self._items[-1]

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"Stack({self._items!r})"


class Child(Stack):
    def push(self, item):
        super().push(item * 2)


if __name__ == "__main__":
    stack = Child()
    stack.push(2)
    print(stack, stack.top, len(stack))
    try:
        [][1]
    except IndexError as error:
        print("caught", error)
""",
    "import random\nrandom.seed(1)\nprint(random.randint(1, 6), random.choice('abc'), random.sample(range(9), 3))\n",
    "from datetime import datetime, timedelta\nprint(datetime(2024, 2, 29) + timedelta(days=365), f'{datetime(2024, 1, 2):%d %b %Y}')\n",
    """\
import asyncio


def named(loop, coroutine, **options):
    return asyncio.Task(coroutine, loop=loop, **options | {"name": "warm"})


def loop():
    # Unnamed tasks are counted, and the first one of a run must be Task-1.
    loop = asyncio.new_event_loop()
    loop.set_task_factory(named)
    return loop


async def main():
    await asyncio.sleep(0)
    print(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))


asyncio.run(main(), loop_factory=loop)
""",
    "def f(x):\n    return 1 / x\n\n\nf(0)\n",
    "assert 1 == 2, 'no'\n",
    "print(undefined)\n",
    "raise SystemExit(3)\n",
    "x = (\n",
    "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1 + 1, 2)\n\n\nunittest.main(argv=['x'], exit=False)\n",
)
