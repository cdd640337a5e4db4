import atexit


class Last:
    def __del__(self):
        print("deleted")


last = Last()


@atexit.register
def first():
    print("registered first, called last")


@atexit.register
def second():
    print("called first")
    raise ValueError("in an exit function")


print("end of main")
