import sys
from functools import cache, lru_cache


@lru_cache(maxsize=None)
def ways(n):
    return 1 if n == 0 else (ways(n - 1) + n) % 1_000_007


@cache
def endless(n):
    return endless(n + 1)


sys.setrecursionlimit(10**6)
print(ways(3_300))
try:
    endless(0)
except RecursionError:
    print("RecursionError")
