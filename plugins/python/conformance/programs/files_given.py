import os

print(open("in.txt").read())
with open("data/deep/bytes.bin", "rb") as file:
    print(file.read())
print(sorted(os.listdir("data")), os.path.getsize("in.txt"))
