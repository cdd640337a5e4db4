import os
import sys

print(sys.version_info[:2] >= (3, 13), sys.implementation.name, sys.byteorder, sys.maxunicode, sys.stdin is sys.__stdin__)
print(os.sep, os.linesep == "\n", os.name, sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.gettrace())
print(__name__, __doc__, __spec__, type(__builtins__).__name__, sys.modules["__main__"].__name__)
print(sorted(name for name in dir() if not name.startswith("__")))
print(os.environ.get("NOT_SET", "default"), type(os.getpid()).__name__, sys.flags.optimize, __debug__)
print([name for name in ("exit", "quit", "help", "copyright", "license") if not hasattr(__builtins__, name)])
