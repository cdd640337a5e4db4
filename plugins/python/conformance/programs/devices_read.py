import os

with open("/dev/stdin") as again:
    print(again.readlines())
with open("/dev/random", "rb", buffering=0) as drawn, open("/dev/urandom", "rb", buffering=0) as more:
    print(len(drawn.read(100)), drawn.read(8) != more.read(8))
print(os.access("/dev/zero", os.R_OK))
