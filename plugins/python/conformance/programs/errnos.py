import errno
import os

names = "EPERM ENOENT EIO EBADF EAGAIN ENOMEM EACCES EEXIST EXDEV ENOTDIR EISDIR EINVAL EMFILE EFBIG ENOSPC ESPIPE ERANGE ENAMETOOLONG ENOSYS".split()
print([(getattr(errno, name), errno.errorcode[getattr(errno, name)]) for name in names])
print([getattr(errno, name) for name in "ENOTEMPTY ELOOP EPROTO EOVERFLOW EILSEQ ENOTSUP ETIMEDOUT ECONNREFUSED ECONNRESET EDQUOT EWOULDBLOCK".split()])
print([os.strerror(number) for number in (0, 1, 2, 13, 17, 20, 21, 22, 28, 39, 9999)])
os.mkdir("full")
open("full/file", "w").close()
for wrong in (
    lambda: open("missing.txt"),
    lambda: os.mkdir("full"),
    lambda: os.listdir("full/file"),
    lambda: open("full"),
    lambda: os.rmdir("full"),
    lambda: os.remove("gone"),
    lambda: os.rename("gone", "there"),
    lambda: os.close(99),
    lambda: os.read(99, 1),
    lambda: open("full/file").seek(-1),
):
    try:
        wrong()
    except OSError as error:
        print(type(error).__name__, error.errno, errno.errorcode.get(error.errno), error)
    except ValueError as error:
        print(error)
print([type(OSError(number, "")).__name__ for number in (1, 2, 3, 4, 10, 11, 13, 17, 20, 21, 32, 104, 110, 111, 114)], repr(OSError(2, "none", "a.txt")))
open("missing/file.txt", "w")
