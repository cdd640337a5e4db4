print("before")
try:
    pieces = []
    while True:
        pieces.append(bytearray(1 << 20))
except MemoryError:
    del pieces
    print("MemoryError")
print("after")
