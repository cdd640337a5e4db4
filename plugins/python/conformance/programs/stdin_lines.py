import sys

first = input()
second = input("prompt> ")
print(repr(first), repr(second))
print(repr(sys.stdin.readline()))
for line in sys.stdin:
    print(repr(line))
try:
    input()
except EOFError as error:
    print("EOFError:", error)
