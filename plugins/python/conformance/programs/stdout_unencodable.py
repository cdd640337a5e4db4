import sys

print("\ud800", file=sys.stderr)
try:
    print("\ud800")
except UnicodeEncodeError as error:
    print(error)
