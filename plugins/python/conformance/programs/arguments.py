import sys

print(sys.argv)
print(len(sys.argv), __name__, __file__)
if __name__ == "__main__":
    print("main")
