import atexit
import os

atexit.register(print, "never")
print("printed", flush=True)
try:
    os._exit(7)
finally:
    print("never either")
