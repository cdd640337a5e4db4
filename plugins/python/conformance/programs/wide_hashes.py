import random
import sys
from decimal import Decimal
from fractions import Fraction


class Wide:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return self.value


numbers = 0.5, -1.5, 1e300, 10**30, -(2**61), 2**61 - 1, 1 + 2j, Decimal("1.1"), Fraction(1, 3), float("inf"), True, None, range(3), ()
for value in numbers:
    print(repr(value), hash(value))
print(hash((1, 2)), hash((-1, (0.5, 10**12))), hash(frozenset({1, -2, 3.5})), hash(slice(1, 2)))
print({(1, 2), (3, 4), (0, 0), (5, -1), (2, 2)})
print({0.1, 2.5, -3.25, 1e10}, {-5, -1, 3, 10**12, -(10**9)}, {frozenset({1}), frozenset({2, 3})})
print(hash(Wide(2**40)), hash(Wide(2**70)), hash(Wide(-1)), (3).__hash__(), (2**63).__hash__())
print(all(hash(Decimal(n).scaleb(e)) == hash(Fraction(n) * Fraction(10) ** e) for n in (1, 7, 10**20 + 3, -12345) for e in (-400, -3, 0, 5, 300)))
cells = {x << 32 | y for x in range(100) for y in range(100)}
print(len(cells), sum(x << 32 | x in cells for x in range(200)))
print(sys.hash_info.width, sys.hash_info.modulus, sys.hash_info.inf, sys.hash_info.imag)
for seed in (0.5, -0.25, 2.75):
    random.seed(seed)
    print(random.random())
