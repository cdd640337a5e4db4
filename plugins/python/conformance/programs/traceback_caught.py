import sys
import traceback


def f():
    raise KeyError("k")


try:
    f()
except KeyError:
    print(traceback.format_exc(), end="")
    kind, value, tb = sys.exc_info()
    print(kind.__name__, value, [(frame.name, frame.lineno, frame.line) for frame in traceback.extract_tb(tb)])
    traceback.print_exc(file=sys.stdout)
