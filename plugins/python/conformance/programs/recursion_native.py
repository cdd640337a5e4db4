import json
import pickle

nested = []
for _ in range(100_000):
    nested = [nested]
for name, function in (("repr", repr), ("json", json.dumps), ("pickle", pickle.dumps)):
    try:
        function(nested)
        print(name, "done")
    except RecursionError:
        print(name, "RecursionError")
try:
    eval("(" * 5_000 + ")" * 5_000)
except (MemoryError, SyntaxError, RecursionError):
    print("eval refused")
while nested:
    nested = nested[0]
