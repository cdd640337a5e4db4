# The template of competition programs: output is kept and written by a flush that uses global names.
import os
import sys
from io import BytesIO, IOBase


class FastIO(IOBase):
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.write = self.buffer.write

    def flush(self):
        os.write(self._fd, self.buffer.getvalue())
        self.buffer.truncate(0), self.buffer.seek(0)


class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.write = lambda text: self.buffer.write(text.encode("ascii"))


sys.stdout, sys.stderr = IOWrapper(sys.stdout), IOWrapper(sys.stderr)
print("kept until the end")
print("this too", file=sys.stderr)
sys.exit(3)
