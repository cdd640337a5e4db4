import collections
import heapq
import importlib
import json
import string
import sys

for name in ("json", "collections", "string", "heapq"):
    before = sys.modules.pop(name)
    again = __import__(name)
    print(name, again is not before, again.__name__, again.__spec__.name)
    sys.modules[name] = before
json.dumps = None
print(importlib.reload(json) is json, json.dumps([1, {"a": None}]))
import random

random.seed(3)
first = random.random()
print(importlib.reload(random) is random, 0 <= random.random() < 1, first)
