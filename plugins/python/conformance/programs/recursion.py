import sys

print(sys.getrecursionlimit())


def depth(n):
    return depth(n + 1)


try:
    depth(0)
except RecursionError as error:
    print("RecursionError:", error)


class Endless:
    def __getattr__(self, name):
        return getattr(self, name + "x")


try:
    Endless().a
except RecursionError:
    print("caught")
sys.setrecursionlimit(3000)


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


print(down(2500))
