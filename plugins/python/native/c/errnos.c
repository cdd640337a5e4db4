// The numbers of errors. Programs see those of Linux, and the C library has those of WASI.

#include <errno.h>

// By the number of WASI.
static const unsigned char of_linux[] = {
    [EPERM] = 1, [ENOENT] = 2, [ESRCH] = 3, [EINTR] = 4, [EIO] = 5, [ENXIO] = 6, [E2BIG] = 7, [ENOEXEC] = 8,
    [EBADF] = 9, [ECHILD] = 10, [EAGAIN] = 11, [ENOMEM] = 12, [EACCES] = 13, [EFAULT] = 14, [EBUSY] = 16,
    [EEXIST] = 17, [EXDEV] = 18, [ENODEV] = 19, [ENOTDIR] = 20, [EISDIR] = 21, [EINVAL] = 22, [ENFILE] = 23,
    [EMFILE] = 24, [ENOTTY] = 25, [ETXTBSY] = 26, [EFBIG] = 27, [ENOSPC] = 28, [ESPIPE] = 29, [EROFS] = 30,
    [EMLINK] = 31, [EPIPE] = 32, [EDOM] = 33, [ERANGE] = 34, [EDEADLK] = 35, [ENAMETOOLONG] = 36, [ENOLCK] = 37,
    [ENOSYS] = 38, [ENOTEMPTY] = 39, [ELOOP] = 40, [ENOMSG] = 42, [EIDRM] = 43, [ENOLINK] = 67, [EPROTO] = 71,
    [EMULTIHOP] = 72, [EBADMSG] = 74, [EOVERFLOW] = 75, [EILSEQ] = 84, [ENOTSOCK] = 88, [EDESTADDRREQ] = 89,
    [EMSGSIZE] = 90, [EPROTOTYPE] = 91, [ENOPROTOOPT] = 92, [EPROTONOSUPPORT] = 93, [ENOTSUP] = 95,
    [EAFNOSUPPORT] = 97, [EADDRINUSE] = 98, [EADDRNOTAVAIL] = 99, [ENETDOWN] = 100, [ENETUNREACH] = 101,
    [ENETRESET] = 102, [ECONNABORTED] = 103, [ECONNRESET] = 104, [ENOBUFS] = 105, [EISCONN] = 106, [ENOTCONN] = 107,
    [ETIMEDOUT] = 110, [ECONNREFUSED] = 111, [EHOSTUNREACH] = 113, [EALREADY] = 114, [EINPROGRESS] = 115,
    [ESTALE] = 116, [EDQUOT] = 122, [ECANCELED] = 125, [EOWNERDEAD] = 130, [ENOTRECOVERABLE] = 131,
};

enum { NUMBERS = sizeof of_linux };

// A number that Linux does not have stays as it is.
int errnos_for_programs(int number) {
    return number > 0 && number < NUMBERS && of_linux[number] ? of_linux[number] : number;
}

// 0 if the C library has no such error.
int errnos_for_system(int number) {
    for (int i = 1; i < NUMBERS; i++)
        if (of_linux[i] == number) return i;
    return 0;
}
