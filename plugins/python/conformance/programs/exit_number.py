import sys

print("before")
try:
    sys.exit(3)
finally:
    print("finally")
