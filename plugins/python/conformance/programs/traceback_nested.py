def outer(values):
    return [inner(value) for value in values]


def inner(value):
    if value == 3:
        # The next line is the one to see.
        return value / (value - 3)
    return value


class Caller:
    def __call__(self):
        return outer(
            [1, 2, 3]
        )


print("before")
Caller()()
print("never")
