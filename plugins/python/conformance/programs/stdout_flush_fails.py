import sys


class Stream:
    def write(self, text):
        sys.__stdout__.write(text)

    def flush(self):
        print("flushed", file=sys.__stdout__)
        raise ValueError("not flushed")


sys.stdout = Stream()
print("printed")
