try:
    data = bytearray(1 << 40)
except (MemoryError, OverflowError):
    print("too large to ask for")
try:
    "x" * (1 << 62)
except (MemoryError, OverflowError):
    print("far too large")
print(sum(range(1000)))
