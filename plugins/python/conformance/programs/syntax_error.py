print("never printed")


def f(x):
    return x +* 2
