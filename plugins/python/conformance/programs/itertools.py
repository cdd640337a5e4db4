import functools
import heapq
import itertools as it
import operator
from bisect import bisect_left, insort

print(list(it.permutations("abc", 2)), list(it.combinations(range(4), 2)), list(it.accumulate([1, 2, 3])))
print([(key, len(list(group))) for key, group in it.groupby("aabbb")], list(it.islice(it.count(3, 2), 4)))
print(list(it.product([0, 1], repeat=2)), list(it.batched("abcdefg", 3)), list(it.pairwise([1, 2, 3])), list(it.zip_longest("ab", "c")))
print(list(it.chain.from_iterable(["ab", "c"])), list(it.takewhile(lambda x: x < 3, it.count())), list(it.compress("abcd", [1, 0, 1, 0])))


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(200), fib.cache_info(), functools.reduce(operator.mul, range(1, 10)), functools.partial(int, base=2)("101"))


@functools.singledispatch
def kind(thing):
    return "other"


@kind.register
def _(thing: int):
    return "int"


print(kind(1), kind("a"), sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)))
heap = [5, 1, 4]
heapq.heapify(heap)
print(heapq.heappop(heap), heapq.nlargest(2, [3, 9, 1]), list(heapq.merge([1, 4], [2, 3])), bisect_left([1, 3, 5], 4))
values = [1, 3]
insort(values, 2)
print(values, list(map(operator.itemgetter(1), [(1, 2), (3, 4)])), max("abc", key=ord), min([], default=None))
