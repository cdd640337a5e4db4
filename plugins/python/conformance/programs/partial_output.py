import sys

print("line one")
print("line two", flush=True)
print("to stderr", file=sys.stderr)
while True:
    pass
