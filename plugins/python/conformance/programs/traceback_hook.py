import sys


def hook(kind, value, tb):
    print("hooked:", kind.__name__, value, tb is not None)


sys.excepthook = hook
raise LookupError("shown by the hook")
