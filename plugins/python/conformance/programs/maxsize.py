import collections
import csv
import functools
import gzip
import io
import itertools
import sys

least = sys.maxsize
for price in (3_000_000_000, 4_000_000_000):
    least = min(least, price)
print(least, sys.maxsize, -sys.maxsize - 1, max([-sys.maxsize, -(10**12)]))
before = csv.field_size_limit(sys.maxsize)
print(before, csv.field_size_limit() > 10**9, csv.field_size_limit(1000) > 10**9, csv.field_size_limit())
for wrong in ("many", 1.5):
    try:
        csv.field_size_limit(wrong)
    except TypeError as error:
        print(error)
print([row for row in csv.reader(["a,b", "1,2"])], [1, 2, 3][: sys.maxsize], [1, 2, 3].index(2, 0, sys.maxsize), "aXbX".replace("X", "-", -1))
print(list(itertools.islice("abc", sys.maxsize)), collections.deque([1], maxlen=sys.maxsize)[0], "a b".split(" ", sys.maxsize), io.BytesIO(b"x").read(sys.maxsize))
with gzip.open(io.BytesIO(gzip.compress(b"data" * 9))) as file:
    print(len(file.read()))
print(functools.lru_cache(maxsize=sys.maxsize)(abs)(-3), "aXbX".replace("X", "-", sys.maxsize), max(range(sys.maxsize)[-2:]), 5 in range(sys.maxsize))
print(next(itertools.count(sys.maxsize)), list(enumerate("ab", sys.maxsize)), list(zip(itertools.count(sys.maxsize - 1), "ab")), 1 >> sys.maxsize)
for wrong in (lambda: [0] * sys.maxsize, lambda: "a" * sys.maxsize):
    try:
        wrong()
    except MemoryError:
        print("MemoryError")
csv.field_size_limit("many")
