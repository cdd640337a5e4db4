// The functions of WASI preview 1 that the C library calls, answered here: files from the tree in files.c, time,
// randomness and output from the host. The linker takes these definitions in place of the imports, so that the module
// asks the host for nothing but the interface `process`.
#include "wasi.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "host.h"

#define WASI(name) __imported_wasi_snapshot_preview1_##name

enum { STDIN, STDOUT, STDERR, ROOT, DESCRIPTORS = 256 };

struct descriptor {
    struct node *node; // none where the descriptor is free, or standard input, output or error
    uint64_t at;
    __wasi_rights_t rights;
    __wasi_fdflags_t flags;
    bool is_open;
};

#define CAN_READ __WASI_RIGHTS_FD_READ
#define CAN_WRITE __WASI_RIGHTS_FD_WRITE

static struct descriptor descriptors[DESCRIPTORS];

// Standard input, output and error, and the root as the one folder that is open from the start.
static struct descriptor *descriptor(int32_t fd) {
    if (!descriptors[ROOT].is_open) {
        descriptors[STDIN] = (struct descriptor){ .is_open = true, .rights = CAN_READ };
        descriptors[STDOUT] = descriptors[STDERR] = (struct descriptor){ .is_open = true, .rights = CAN_WRITE };
        descriptors[ROOT] = (struct descriptor){ .is_open = true, .node = files_root(), .rights = ~0ull };
    }
    if (fd < 0 || fd >= DESCRIPTORS || !descriptors[fd].is_open) return NULL;
    return &descriptors[fd];
}

bool wasi_has_open_files(void) {
    for (int fd = ROOT + 1; fd < DESCRIPTORS; fd++)
        if (descriptors[fd].is_open) return true;
    return false;
}

static __wasi_errno_t folder(int32_t fd, struct node **node) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    if (!d->node || !d->node->is_folder) return __WASI_ERRNO_NOTDIR;
    *node = d->node;
    return 0;
}

static __wasi_errno_t find(int32_t fd, const char *path, size_t length, struct place *place) {
    struct node *start;
    __wasi_errno_t error = folder(fd, &start);
    return error ? error : files_find(start, path, length, place);
}

// A file, not a folder and not a stream.
static __wasi_errno_t file(int32_t fd, __wasi_rights_t needed, struct descriptor **found) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    if (!d->node || files_is_stream(d->node)) return __WASI_ERRNO_SPIPE;
    if (d->node->is_folder) return __WASI_ERRNO_ISDIR;
    if ((d->rights & needed) != needed) return __WASI_ERRNO_BADF;
    *found = d;
    return 0;
}

// --------------------------------------------------------------------- arguments, time and randomness

int32_t WASI(args_sizes_get)(__wasi_size_t *count, __wasi_size_t *bytes) { return *count = *bytes = 0; }
int32_t WASI(args_get)(void *pointers, void *bytes) { return 0; }
int32_t WASI(environ_sizes_get)(__wasi_size_t *count, __wasi_size_t *bytes) { return *count = *bytes = 0; }
int32_t WASI(environ_get)(void *pointers, void *bytes) { return 0; }

static __wasi_timestamp_t now(int32_t clock) {
    return clock == __WASI_CLOCKID_REALTIME ? host_wall_now() : host_monotonic_now();
}

int32_t WASI(clock_res_get)(int32_t clock, __wasi_timestamp_t *resolution) {
    if (clock < 0 || clock > 3) return __WASI_ERRNO_INVAL;
    *resolution = 1;
    return 0;
}

int32_t WASI(clock_time_get)(int32_t clock, __wasi_timestamp_t precision, __wasi_timestamp_t *time) {
    if (clock < 0 || clock > 3) return __WASI_ERRNO_INVAL;
    *time = now(clock);
    return 0;
}

int32_t WASI(random_get)(uint8_t *bytes, __wasi_size_t length) {
    host_random_bytes(bytes, length);
    return 0;
}

void WASI(proc_exit)(int32_t code) {
    host_exit(code);
    __builtin_trap();
}

int32_t WASI(sched_yield)(void) { return 0; }

// A descriptor is always ready; a clock is waited for only where nothing else is asked.
int32_t WASI(poll_oneoff)(const __wasi_subscription_t *in, __wasi_event_t *out, __wasi_size_t count,
                          __wasi_size_t *events) {
    if (count == 0) return __WASI_ERRNO_INVAL;
    __wasi_size_t ready = 0;
    uint64_t shortest = UINT64_MAX;
    for (__wasi_size_t i = 0; i < count; i++) {
        if (in[i].u.tag != __WASI_EVENTTYPE_CLOCK) {
            __wasi_event_t *e = &out[ready++];
            *e = (__wasi_event_t){ .userdata = in[i].userdata, .type = in[i].u.tag };
            if (!descriptor((int32_t)in[i].u.u.fd_read.file_descriptor)) e->error = __WASI_ERRNO_BADF;
            else e->fd_readwrite.nbytes = 1;
        }
    }
    if (ready == 0) {
        for (__wasi_size_t i = 0; i < count; i++) {
            const __wasi_subscription_clock_t *clock = &in[i].u.u.clock;
            uint64_t wait = clock->timeout;
            if (clock->flags & __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME) {
                uint64_t time = now((int32_t)clock->id);
                wait = wait > time ? wait - time : 0;
            }
            if (wait < shortest) {
                shortest = wait;
                out[0] = (__wasi_event_t){ .userdata = in[i].userdata, .type = __WASI_EVENTTYPE_CLOCK };
            }
        }
        host_sleep(shortest);
        ready = 1;
    }
    *events = ready;
    return 0;
}

// --------------------------------------------------------------------------------------- descriptors

int32_t WASI(fd_prestat_get)(int32_t fd, __wasi_prestat_t *prestat) {
    if (fd != ROOT || !descriptor(fd)) return __WASI_ERRNO_BADF;
    *prestat = (__wasi_prestat_t){ .tag = __WASI_PREOPENTYPE_DIR, .u.dir.pr_name_len = 1 };
    return 0;
}

int32_t WASI(fd_prestat_dir_name)(int32_t fd, char *path, __wasi_size_t length) {
    if (fd != ROOT) return __WASI_ERRNO_BADF;
    if (length < 1) return __WASI_ERRNO_NAMETOOLONG;
    *path = '/';
    return 0;
}

static __wasi_filetype_t type_of(const struct node *node) {
    // A program's streams are pipes, which is no type of WASI's; a character device would be a terminal.
    if (!node || files_is_stream(node)) return __WASI_FILETYPE_UNKNOWN;
    if (node->device) return __WASI_FILETYPE_CHARACTER_DEVICE;
    return node->is_folder ? __WASI_FILETYPE_DIRECTORY : __WASI_FILETYPE_REGULAR_FILE;
}

int32_t WASI(fd_fdstat_get)(int32_t fd, __wasi_fdstat_t *stat) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    *stat = (__wasi_fdstat_t){
        .fs_filetype = type_of(d->node),
        .fs_flags = d->flags,
        .fs_rights_base = d->rights,
        .fs_rights_inheriting = ~0ull,
    };
    return 0;
}

int32_t WASI(fd_fdstat_set_flags)(int32_t fd, int32_t flags) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    d->flags = (__wasi_fdflags_t)flags;
    return 0;
}

int32_t WASI(fd_fdstat_set_rights)(int32_t fd, __wasi_rights_t rights, __wasi_rights_t inheriting) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    if (rights & ~d->rights) return __WASI_ERRNO_NOTCAPABLE;
    d->rights = rights;
    return 0;
}

static void describe(const struct node *node, __wasi_filestat_t *stat) {
    *stat = (__wasi_filestat_t){ .dev = 1, .nlink = 1, .filetype = type_of(node) };
    if (!node) return;
    stat->ino = node->number;
    stat->nlink = node->names;
    stat->size = node->size;
    stat->atim = node->accessed;
    stat->mtim = node->modified;
    stat->ctim = node->changed;
}

int32_t WASI(fd_filestat_get)(int32_t fd, __wasi_filestat_t *stat) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    describe(d->node, stat);
    return 0;
}

static __wasi_errno_t set_times(struct node *node, uint64_t accessed, uint64_t modified, int32_t flags) {
    uint64_t time = host_wall_now();
    if (flags & __WASI_FSTFLAGS_ATIM) node->accessed = accessed;
    if (flags & __WASI_FSTFLAGS_ATIM_NOW) node->accessed = time;
    if (flags & __WASI_FSTFLAGS_MTIM) node->modified = modified;
    if (flags & __WASI_FSTFLAGS_MTIM_NOW) node->modified = time;
    node->changed = time;
    return 0;
}

int32_t WASI(fd_filestat_set_times)(int32_t fd, uint64_t accessed, uint64_t modified, int32_t flags) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    return d->node ? set_times(d->node, accessed, modified, flags) : __WASI_ERRNO_INVAL;
}

int32_t WASI(fd_filestat_set_size)(int32_t fd, uint64_t size) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, CAN_WRITE, &d);
    if (error == __WASI_ERRNO_BADF && descriptor(fd)) error = __WASI_ERRNO_INVAL;
    return error ? error : files_resize(d->node, size);
}

int32_t WASI(fd_allocate)(int32_t fd, uint64_t at, uint64_t length) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, CAN_WRITE, &d);
    if (error) return error;
    if (at + length < at) return __WASI_ERRNO_FBIG;
    return at + length > d->node->size ? files_resize(d->node, at + length) : 0;
}

static void close(struct descriptor *d) {
    struct node *node = d->node;
    *d = (struct descriptor){ 0 };
    if (!node) return;
    node->opened--;
    files_release(node);
}

int32_t WASI(fd_close)(int32_t fd) {
    struct descriptor *d = descriptor(fd);
    if (!d) return __WASI_ERRNO_BADF;
    if (fd == ROOT) return __WASI_ERRNO_NOTSUP;
    close(d);
    return 0;
}

int32_t WASI(fd_renumber)(int32_t from, int32_t to) {
    struct descriptor *a = descriptor(from), *b = descriptor(to);
    if (!a || !b) return __WASI_ERRNO_BADF;
    if (from == ROOT || to == ROOT) return __WASI_ERRNO_NOTSUP;
    if (a == b) return 0;
    close(b);
    *b = *a;
    *a = (struct descriptor){ 0 };
    return 0;
}

int32_t WASI(fd_advise)(int32_t fd, uint64_t at, uint64_t length, int32_t advice) {
    return descriptor(fd) ? 0 : __WASI_ERRNO_BADF;
}

int32_t WASI(fd_sync)(int32_t fd) { return descriptor(fd) ? 0 : __WASI_ERRNO_BADF; }
int32_t WASI(fd_datasync)(int32_t fd) { return descriptor(fd) ? 0 : __WASI_ERRNO_BADF; }

// ------------------------------------------------------------------------------------ reading, writing

static size_t read_into(struct node *node, uint64_t at, const __wasi_iovec_t *parts, __wasi_size_t count) {
    size_t total = 0;
    for (__wasi_size_t i = 0; i < count; i++) {
        size_t n = files_read(node, at + total, parts[i].buf, parts[i].buf_len);
        total += n;
        if (n < parts[i].buf_len) break;
    }
    return total;
}

// What fitted counts as written, and only nothing at all is an error.
static __wasi_errno_t write_from(struct node *node, uint64_t at, const __wasi_ciovec_t *parts, __wasi_size_t count,
                                 size_t *total) {
    *total = 0;
    for (__wasi_size_t i = 0; i < count; i++) {
        __wasi_errno_t error = files_write(node, at + *total, parts[i].buf, parts[i].buf_len);
        if (error) return *total ? 0 : error;
        *total += parts[i].buf_len;
    }
    return 0;
}

int32_t WASI(fd_read)(int32_t fd, const __wasi_iovec_t *parts, __wasi_size_t count, __wasi_size_t *read) {
    struct descriptor *d = descriptor(fd);
    if (!d || !(d->rights & CAN_READ)) return __WASI_ERRNO_BADF;
    if (!d->node) {
        *read = 0; // at its end; a program's input is a file that takes the descriptor's place
        return 0;
    }
    if (d->node->is_folder) return __WASI_ERRNO_ISDIR;
    *read = read_into(d->node, d->at, parts, count);
    if (!d->node->device) d->at += *read;
    return 0;
}

int32_t WASI(fd_pread)(int32_t fd, const __wasi_iovec_t *parts, __wasi_size_t count, uint64_t at, __wasi_size_t *read) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, CAN_READ, &d);
    if (error) return error;
    *read = read_into(d->node, at, parts, count);
    return 0;
}

int32_t WASI(fd_write)(int32_t fd, const __wasi_ciovec_t *parts, __wasi_size_t count, __wasi_size_t *written) {
    struct descriptor *d = descriptor(fd);
    if (!d || !(d->rights & CAN_WRITE)) return __WASI_ERRNO_BADF;
    if (!d->node) {
        *written = 0;
        for (__wasi_size_t i = 0; i < count; i++) {
            if (parts[i].buf_len) host_write((uint8_t)fd, parts[i].buf, parts[i].buf_len);
            *written += parts[i].buf_len;
        }
        return 0;
    }
    if (d->node->is_folder) return __WASI_ERRNO_ISDIR;
    if (d->flags & __WASI_FDFLAGS_APPEND) d->at = d->node->size;
    size_t total;
    __wasi_errno_t error = write_from(d->node, d->at, parts, count, &total);
    if (error) return error;
    if (!d->node->device) d->at += total;
    *written = total;
    return 0;
}

int32_t WASI(fd_pwrite)(int32_t fd, const __wasi_ciovec_t *parts, __wasi_size_t count, uint64_t at,
                        __wasi_size_t *written) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, CAN_WRITE, &d);
    if (error) return error;
    size_t total;
    error = write_from(d->node, at, parts, count, &total);
    if (!error) *written = total;
    return error;
}

int32_t WASI(fd_seek)(int32_t fd, int64_t offset, int32_t whence, uint64_t *at) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, 0, &d);
    if (error) return error;
    int64_t start = 0;
    switch (whence) {
    case __WASI_WHENCE_SET: break;
    case __WASI_WHENCE_CUR: start = (int64_t)d->at; break;
    case __WASI_WHENCE_END: start = (int64_t)d->node->size; break;
    default: return __WASI_ERRNO_INVAL;
    }
    int64_t target;
    if (__builtin_add_overflow(start, offset, &target) || target < 0) return __WASI_ERRNO_INVAL;
    *at = d->at = d->node->device ? 0 : (uint64_t)target; // a device has no positions
    return 0;
}

int32_t WASI(fd_tell)(int32_t fd, uint64_t *at) {
    struct descriptor *d;
    __wasi_errno_t error = file(fd, 0, &d);
    if (!error) *at = d->at;
    return error;
}

int32_t WASI(fd_readdir)(int32_t fd, uint8_t *buffer, __wasi_size_t length, uint64_t cookie, __wasi_size_t *used) {
    struct node *node;
    __wasi_errno_t error = folder(fd, &node);
    if (error) return error;
    size_t at = 0;
    // An entry that is cut off says that there are more.
    for (uint32_t i = 0; i < node->count && at < length; i++) {
        const struct entry *e = &node->entries[i];
        if (e->sequence <= cookie) continue;
        __wasi_dirent_t head = {
            .d_next = e->sequence,
            .d_ino = e->node->number,
            .d_namlen = e->length,
            .d_type = type_of(e->node),
        };
        size_t n = length - at < sizeof head ? length - at : sizeof head;
        memcpy(buffer + at, &head, n);
        at += n;
        n = length - at < e->length ? length - at : e->length;
        memcpy(buffer + at, e->name, n);
        at += n;
    }
    *used = at;
    return 0;
}

// --------------------------------------------------------------------------------------------- paths

int32_t WASI(path_open)(int32_t fd, int32_t lookup, const char *path, __wasi_size_t length, int32_t how,
                        __wasi_rights_t rights, __wasi_rights_t inheriting, int32_t flags, __wasi_fd_t *opened) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    if (error) return error;
    int32_t free_one = 0;
    while (free_one < DESCRIPTORS && descriptors[free_one].is_open) free_one++;
    if (free_one == DESCRIPTORS) return __WASI_ERRNO_MFILE;
    if (!place.node) {
        if (!(how & __WASI_OFLAGS_CREAT)) return __WASI_ERRNO_NOENT;
        if (how & __WASI_OFLAGS_DIRECTORY) return __WASI_ERRNO_INVAL;
        error = files_create(&place, false);
        if (error) return error;
    } else {
        if ((how & __WASI_OFLAGS_CREAT) && (how & __WASI_OFLAGS_EXCL)) return __WASI_ERRNO_EXIST;
        if (place.node->is_folder) {
            if ((how & __WASI_OFLAGS_CREAT) || (rights & CAN_WRITE)) return __WASI_ERRNO_ISDIR;
        } else {
            if (how & __WASI_OFLAGS_DIRECTORY) return __WASI_ERRNO_NOTDIR;
            if ((how & __WASI_OFLAGS_TRUNC) && !place.node->device) files_resize(place.node, 0);
        }
    }
    place.node->opened++;
    descriptors[free_one] = (struct descriptor){
        .is_open = true,
        .node = place.node,
        .rights = rights,
        .flags = (__wasi_fdflags_t)flags,
    };
    *opened = (__wasi_fd_t)free_one;
    return 0;
}

int32_t WASI(path_filestat_get)(int32_t fd, int32_t lookup, const char *path, __wasi_size_t length,
                                __wasi_filestat_t *stat) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    if (error) return error;
    if (!place.node) return __WASI_ERRNO_NOENT;
    describe(place.node, stat);
    return 0;
}

int32_t WASI(path_filestat_set_times)(int32_t fd, int32_t lookup, const char *path, __wasi_size_t length,
                                      uint64_t accessed, uint64_t modified, int32_t flags) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    if (error) return error;
    return place.node ? set_times(place.node, accessed, modified, flags) : __WASI_ERRNO_NOENT;
}

int32_t WASI(path_create_directory)(int32_t fd, const char *path, __wasi_size_t length) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    if (error) return error == __WASI_ERRNO_NOTDIR ? (place.node ? __WASI_ERRNO_EXIST : error) : error;
    return place.node ? __WASI_ERRNO_EXIST : files_create(&place, true);
}

int32_t WASI(path_unlink_file)(int32_t fd, const char *path, __wasi_size_t length) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    return error ? error : files_unlink(&place);
}

int32_t WASI(path_remove_directory)(int32_t fd, const char *path, __wasi_size_t length) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    return error ? error : files_remove_folder(&place);
}

int32_t WASI(path_rename)(int32_t fd, const char *path, __wasi_size_t length, int32_t to_fd, const char *to_path,
                          __wasi_size_t to_length) {
    struct place from, to;
    __wasi_errno_t error = find(fd, path, length, &from);
    if (!error) error = find(to_fd, to_path, to_length, &to);
    return error ? error : files_rename(&from, &to);
}

int32_t WASI(path_link)(int32_t fd, int32_t lookup, const char *path, __wasi_size_t length, int32_t to_fd,
                        const char *to_path, __wasi_size_t to_length) {
    struct place from, to;
    __wasi_errno_t error = find(fd, path, length, &from);
    if (!error) error = find(to_fd, to_path, to_length, &to);
    if (error) return error;
    if (from.is_of_system) return __WASI_ERRNO_XDEV;
    return from.node ? files_link(&to, from.node) : __WASI_ERRNO_NOENT;
}

// There are no symbolic links.
int32_t WASI(path_symlink)(const char *target, __wasi_size_t target_length, int32_t fd, const char *path,
                           __wasi_size_t length) {
    return __WASI_ERRNO_NOTSUP;
}

int32_t WASI(path_readlink)(int32_t fd, const char *path, __wasi_size_t length, uint8_t *buffer, __wasi_size_t room,
                            __wasi_size_t *used) {
    struct place place;
    __wasi_errno_t error = find(fd, path, length, &place);
    if (error) return error;
    return place.node ? __WASI_ERRNO_INVAL : __WASI_ERRNO_NOENT;
}

// ------------------------------------------------------------------------------------------- sockets

static __wasi_errno_t no_socket(int32_t fd) { return descriptor(fd) ? __WASI_ERRNO_NOTSOCK : __WASI_ERRNO_BADF; }

int32_t WASI(sock_accept)(int32_t fd, int32_t flags, __wasi_fd_t *opened) { return no_socket(fd); }
int32_t WASI(sock_recv)(int32_t fd, void *parts, __wasi_size_t count, int32_t flags, __wasi_size_t *n, void *out) {
    return no_socket(fd);
}
int32_t WASI(sock_send)(int32_t fd, void *parts, __wasi_size_t count, int32_t flags, __wasi_size_t *n) {
    return no_socket(fd);
}
int32_t WASI(sock_shutdown)(int32_t fd, int32_t how) { return no_socket(fd); }
