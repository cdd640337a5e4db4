import contextlib
import io
import sys

kept = io.StringIO()
with contextlib.redirect_stdout(kept):
    print("caught")
print("kept:", repr(kept.getvalue()))
old, sys.stdout = sys.stdout, io.StringIO()
print("lost")
sys.stdout, lost = old, sys.stdout
print("then:", repr(lost.getvalue()))
sys.stdout.flush()
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8", write_through=False)
print("through a wrapper of the program's own, never flushed")
