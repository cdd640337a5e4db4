import os
import sys

print("printed", flush=True)
os.write(1, b"written\n")
os.write(2, b"to the other\n")
print("printed again", file=sys.stderr)
