import contextlib
import errno
import os
import shutil
import stat
import sys

with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
    print("not shown")
with open("/dev/null", "r+b", buffering=0) as null:
    print(null.write(b"abc"), null.read(), null.isatty(), null.seek(5), null.tell())
print(repr(open(os.devnull).read()), stat.S_ISCHR(os.stat(os.devnull).st_mode), os.path.getsize(os.devnull))
with open("/dev/zero", "rb") as zero:
    print(zero.read(4))
with open("/dev/urandom", "rb") as drawn:
    print(len(drawn.read(10_000)), drawn.read(16) != drawn.read(16))
shutil.copyfile(os.devnull, "empty")
print(os.path.getsize("empty"), repr(open("/dev/stdin").read()))
with open("/dev/stderr", "w") as errors:
    print("to standard error", file=errors)
sys.stdout.flush()
with open("/dev/stdout", "w") as output:
    print(output.seekable(), output.write("to standard output\n"))
try:
    os.truncate(os.devnull, 10)
except OSError as error:
    print("truncate:", errno.errorcode[error.errno])
# What lies around is no device.
os.makedirs("dev")
with open("dev/null.txt", "w") as file:
    file.write("kept")
shutil.copytree(".", "copy")
print(sorted(os.listdir("copy/dev")), os.listdir("dev"), os.path.exists("/dev/null"))
for change in (os.rename, os.link):
    try:
        change("/dev/zero", "out.txt")
    except OSError as error:
        print(errno.errorcode[error.errno])
