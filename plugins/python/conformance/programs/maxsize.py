import csv
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
