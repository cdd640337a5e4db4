import sys


class Counted:
    alive = 0

    def __init__(self, name):
        self.name = name
        Counted.alive += 1

    def __del__(self):
        Counted.alive -= 1
        print("end of", self.name, "left", Counted.alive, described(), sys.version_info[0])


def described():
    return "by its class"


def generator():
    try:
        yield 1
    finally:
        print("generator closed", described())


first, second = Counted("first"), Counted("second")
held = [Counted("in a list"), Counted("later in it")]
_private = Counted("private")
ring = Counted("of a ring")
ring.ring = ring
table = {"a": Counted("in a dict")}
going = generator()
next(going)
print("end of the program")
