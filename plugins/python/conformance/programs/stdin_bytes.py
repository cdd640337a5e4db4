import sys

print(sys.stdin.buffer.read(3))
print(sys.stdin.buffer.readline())
print(sys.stdin.buffer.read())
print(sys.stdin.encoding, sys.stdin.fileno(), sys.stdin.isatty(), sys.stdin.readable())
