import os

print(os.read(0, 4))
print(open(0).read())
