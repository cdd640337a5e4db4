import copy
import pickle
import shelve


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


def function():
    return "called"


for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    assert pickle.loads(pickle.dumps(Point([1, (2, 3)]), protocol)) == Point([1, (2, 3)])
print(Point.__module__, pickle.loads(pickle.dumps(function))(), pickle.dumps({"a": 1}, 0))
deep = {"a": [Point(1)]}
copied = copy.deepcopy(deep)
print(copied == deep, copied["a"][0] is deep["a"][0], copy.copy(deep)["a"] is deep["a"])
try:
    pickle.dumps(lambda: 1)
except (pickle.PicklingError, AttributeError) as error:
    print("no lambdas")
with open("p.pickle", "wb") as file:
    pickle.dump([Point(5)], file)
print(pickle.load(open("p.pickle", "rb"))[0].x)
