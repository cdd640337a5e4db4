#include "files.h"

#include <stdlib.h>
#include <string.h>

#include "host.h"

enum { MAX_NAME = 255, MIN_ROOM = 256 };

static struct node root = { .is_folder = true, .names = 1, .number = 1, .parent = &root };
static uint64_t last_number = 1;

// Written to in every run: without a first value, so that they lie where others are written to.
static uint64_t bytes_held, bytes_allowed;
static uint32_t entries_held, entries_allowed;

struct node *files_root(void) { return &root; }

void files_limit(uint64_t bytes, uint32_t entries) {
    bytes_allowed = bytes;
    entries_allowed = entries;
}

// ------------------------------------------------------------------------------------------ folders

static uint32_t hash(const char *name, uint32_t length) {
    uint32_t h = 2166136261u; // FNV-1a
    for (uint32_t i = 0; i < length; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
    return h;
}

static struct entry *lookup(const struct node *folder, const char *name, uint32_t length) {
    uint32_t h = hash(name, length);
    for (uint32_t i = 0; i < folder->count; i++) {
        struct entry *e = &folder->entries[i];
        if (e->hash == h && e->length == length && memcmp(e->name, name, length) == 0) return e;
    }
    return NULL;
}

static void touch(struct node *node) { node->modified = node->changed = host_wall_now(); }

static __wasi_errno_t insert(struct place *place, struct node *node) {
    struct node *folder = place->folder;
    if (entries_held >= entries_allowed) return __WASI_ERRNO_NOSPC;
    if (folder->count == folder->space) {
        uint32_t space = folder->space ? folder->space * 2 : 8;
        struct entry *entries = realloc(folder->entries, space * sizeof *entries);
        if (!entries) return __WASI_ERRNO_NOSPC;
        folder->entries = entries;
        folder->space = space;
    }
    char *name = malloc(place->length ? place->length : 1);
    if (!name) return __WASI_ERRNO_NOSPC;
    memcpy(name, place->name, place->length);
    folder->entries[folder->count++] = (struct entry){
        .name = name,
        .length = place->length,
        .hash = hash(name, place->length),
        .sequence = ++folder->next_sequence,
        .node = node,
    };
    node->names++;
    if (node->is_folder) node->parent = folder;
    entries_held++;
    touch(folder);
    return 0;
}

static void lose_name(struct node *node) {
    node->names--;
    node->changed = host_wall_now();
    // What is above a removed folder may be freed before it is.
    if (node->is_folder && !node->names) node->parent = &root;
}

static void take_out(struct place *place) {
    struct node *folder = place->folder;
    struct entry *e = lookup(folder, place->name, place->length);
    lose_name(e->node);
    free(e->name);
    size_t after = (size_t)(folder->entries + folder->count - (e + 1));
    memmove(e, e + 1, after * sizeof *e);
    folder->count--;
    entries_held--;
    touch(folder);
}

void files_release(struct node *node) {
    if (node->names || node->opened || node == &root) return;
    bytes_held -= node->size;
    free(node->data);
    free(node->entries);
    free(node);
}

void files_clear(struct node *folder) {
    for (uint32_t i = 0; i < folder->count; i++) {
        struct entry *e = &folder->entries[i];
        if (e->node->is_folder) files_clear(e->node);
        e->node->names--;
        files_release(e->node);
        free(e->name);
    }
    entries_held -= folder->count;
    free(folder->entries);
    folder->entries = NULL;
    folder->count = folder->space = 0;
}

// ------------------------------------------------------------------------------------------ devices

#define DEVICE(text, ...) { text, sizeof text - 1, { .names = 1, __VA_ARGS__ } }

// `/dev/stdin` is an ordinary file: the driver writes a program's input to it. It has no name in the tree, so `/dev` is not
// listed, and a program can have a folder or a file of that name.
static struct { const char *path; size_t length; struct node node; } devices[] = {
    DEVICE("dev/null", .device = DEVICE_NULL, .number = UINT64_MAX),
    DEVICE("dev/zero", .device = DEVICE_ZERO, .number = UINT64_MAX - 1),
    DEVICE("dev/random", .device = DEVICE_RANDOM, .number = UINT64_MAX - 2),
    DEVICE("dev/urandom", .device = DEVICE_RANDOM, .number = UINT64_MAX - 3),
    DEVICE("dev/stdin", .number = UINT64_MAX - 4),
    DEVICE("dev/stdout", .device = DEVICE_STDOUT, .number = UINT64_MAX - 5),
    DEVICE("dev/stderr", .device = DEVICE_STDERR, .number = UINT64_MAX - 6),
};

static struct node *device(const char *path, size_t length) {
    while (length && *path == '/') path++, length--;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].length == length && memcmp(devices[i].path, path, length) == 0) return &devices[i].node;
    return NULL;
}

// -------------------------------------------------------------------------------------------- paths

// Above the root is the root, as everywhere.
static __wasi_errno_t find_in_tree(struct node *start, const char *path, size_t length, struct place *place) {
    if (length == 0) return __WASI_ERRNO_NOENT;
    if (memchr(path, 0, length)) return __WASI_ERRNO_INVAL;
    struct node *node = *path == '/' ? &root : start;
    *place = (struct place){ .folder = node, .name = ".", .length = 1, .node = node };
    const char *end = path + length;
    place->must_be_folder = end[-1] == '/';
    while (path < end) {
        if (*path == '/') {
            path++;
            continue;
        }
        const char *slash = memchr(path, '/', (size_t)(end - path));
        if (!slash) slash = end;
        uint32_t n = (uint32_t)(slash - path);
        if (n > MAX_NAME) return __WASI_ERRNO_NAMETOOLONG;
        if (!place->node) return __WASI_ERRNO_NOENT;
        node = place->node;
        if (!node->is_folder) return __WASI_ERRNO_NOTDIR;
        if (n == 1 && path[0] == '.') {
            place->must_be_folder |= slash == end;
        } else if (n == 2 && path[0] == '.' && path[1] == '.') {
            *place = (struct place){ .folder = node->parent, .name = ".", .length = 1, .node = node->parent,
                                     .must_be_folder = place->must_be_folder };
        } else {
            struct entry *e = lookup(node, path, n);
            place->folder = node;
            place->name = path;
            place->length = n;
            place->node = e ? e->node : NULL;
        }
        path = slash;
    }
    if (place->must_be_folder && place->node && !place->node->is_folder) return __WASI_ERRNO_NOTDIR;
    return 0;
}

__wasi_errno_t files_find(struct node *start, const char *path, size_t length, struct place *place) {
    __wasi_errno_t error = find_in_tree(start, path, length, place);
    bool is_missing = error ? error == __WASI_ERRNO_NOENT || error == __WASI_ERRNO_NOTDIR : !place->node;
    struct node *node = is_missing && start == &root ? device(path, length) : NULL;
    if (!node) return error;
    *place = (struct place){ .folder = &root, .name = ".", .length = 1, .node = node, .is_of_system = true };
    return 0;
}

static bool has_no_name(const struct place *place) { return place->length == 1 && place->name[0] == '.'; }

__wasi_errno_t files_create(struct place *place, bool folder) {
    if (place->must_be_folder && !folder) return __WASI_ERRNO_ISDIR;
    // A working directory that was removed takes nothing.
    if (!place->folder->names) return __WASI_ERRNO_NOENT;
    struct node *node = calloc(1, sizeof *node);
    if (!node) return __WASI_ERRNO_NOSPC;
    node->is_folder = folder;
    node->number = ++last_number;
    node->accessed = node->modified = node->changed = host_wall_now();
    __wasi_errno_t error = insert(place, node);
    if (error) {
        free(node);
        return error;
    }
    place->node = node;
    return 0;
}

__wasi_errno_t files_link(struct place *place, struct node *node) {
    if (node->is_folder) return __WASI_ERRNO_PERM;
    if (place->node) return __WASI_ERRNO_EXIST;
    if (place->must_be_folder) return __WASI_ERRNO_NOENT;
    return insert(place, node);
}

__wasi_errno_t files_unlink(struct place *place) {
    struct node *node = place->node;
    if (!node) return __WASI_ERRNO_NOENT;
    if (node->is_folder) return __WASI_ERRNO_ISDIR;
    if (place->is_of_system) return __WASI_ERRNO_ACCES;
    take_out(place);
    files_release(node);
    return 0;
}

__wasi_errno_t files_remove_folder(struct place *place) {
    struct node *node = place->node;
    if (!node) return __WASI_ERRNO_NOENT;
    if (!node->is_folder) return __WASI_ERRNO_NOTDIR;
    if (node == &root) return __WASI_ERRNO_BUSY;
    if (has_no_name(place)) return __WASI_ERRNO_INVAL;
    if (node->count) return __WASI_ERRNO_NOTEMPTY;
    take_out(place);
    files_release(node);
    return 0;
}

__wasi_errno_t files_rename(struct place *from, struct place *to) {
    struct node *node = from->node, *old = to->node;
    if (!node) return __WASI_ERRNO_NOENT;
    if (from->is_of_system || to->is_of_system) return __WASI_ERRNO_XDEV;
    if (has_no_name(from) || has_no_name(to)) return __WASI_ERRNO_BUSY;
    if (node == old) return 0;
    if (node->is_folder) {
        for (struct node *above = to->folder;; above = above->parent) {
            if (above == node) return __WASI_ERRNO_INVAL;
            if (above == &root) break;
        }
        if (old && !old->is_folder) return __WASI_ERRNO_NOTDIR;
        if (old && old->count) return __WASI_ERRNO_NOTEMPTY;
    } else {
        if (old && old->is_folder) return __WASI_ERRNO_ISDIR;
        if (to->must_be_folder) return __WASI_ERRNO_NOTDIR;
    }
    if (old) {
        // The name stays and leads elsewhere.
        struct entry *e = lookup(to->folder, to->name, to->length);
        e->node = node;
        node->names++;
        lose_name(old);
        if (node->is_folder) node->parent = to->folder;
        touch(to->folder);
        files_release(old);
    } else {
        // Its old name is given back first, so that a rename works where no more entries are allowed.
        entries_held--;
        __wasi_errno_t error = insert(to, node);
        entries_held++;
        if (error) return error;
    }
    take_out(from);
    return 0;
}

// --------------------------------------------------------------------------------------------- data

static __wasi_errno_t make_room(struct node *file, uint64_t size) {
    uint64_t left = bytes_allowed > bytes_held ? bytes_allowed - bytes_held : 0;
    if (size > file->size && size - file->size > left) return __WASI_ERRNO_NOSPC;
    if (size <= file->room) return 0;
    if (size > INT32_MAX) return __WASI_ERRNO_FBIG;
    size_t room = file->room + file->room / 2;
    if (room < size) room = (size_t)size;
    if (room < MIN_ROOM) room = MIN_ROOM;
    uint8_t *data = realloc(file->data, room);
    if (!data && room > size) data = realloc(file->data, room = (size_t)size);
    if (!data) return __WASI_ERRNO_NOSPC;
    file->data = data;
    file->room = room;
    return 0;
}

static void set_size(struct node *file, size_t size) {
    if (size > file->size) memset(file->data + file->size, 0, size - file->size);
    bytes_held += size;
    bytes_held -= file->size;
    file->size = size;
}

__wasi_errno_t files_resize(struct node *file, uint64_t size) {
    if (file->is_folder) return __WASI_ERRNO_ISDIR;
    if (file->device) return __WASI_ERRNO_INVAL;
    __wasi_errno_t error = make_room(file, size);
    if (error) return error;
    set_size(file, (size_t)size);
    touch(file);
    return 0;
}

__wasi_errno_t files_write(struct node *file, uint64_t at, const uint8_t *data, size_t length) {
    if (length == 0) return 0;
    if (file->device) {
        if (file->device == DEVICE_STDOUT) host_write(1, data, length);
        if (file->device == DEVICE_STDERR) host_write(2, data, length);
        return 0;
    }
    uint64_t end = at + length;
    if (end < at) return __WASI_ERRNO_FBIG;
    __wasi_errno_t error = make_room(file, end);
    if (error) return error;
    if (at > file->size) set_size(file, (size_t)at);
    if (end > file->size) {
        bytes_held += end - file->size;
        file->size = (size_t)end;
    }
    memcpy(file->data + at, data, length);
    touch(file);
    return 0;
}

size_t files_read(struct node *file, uint64_t at, uint8_t *data, size_t length) {
    switch (file->device) {
    case NO_DEVICE: break;
    case DEVICE_ZERO: memset(data, 0, length); return length;
    case DEVICE_RANDOM: host_random_bytes(data, length); return length;
    default: return 0;
    }
    if (at >= file->size) return 0;
    if (length > file->size - at) length = file->size - (size_t)at;
    memcpy(data, file->data + at, length);
    return length;
}

// ---------------------------------------------------------------------------------------- the build

__wasi_errno_t files_stage(const char *path, size_t length, uint8_t *data, size_t size) {
    struct place place;
    for (size_t n = 1; n <= length; n++) {
        if (n < length && path[n] != '/') continue;
        __wasi_errno_t error = files_find(&root, path, n, &place);
        if (!error && !place.node) error = files_create(&place, n < length);
        if (error) return error;
    }
    if (place.node->is_folder || place.node->data) return __WASI_ERRNO_EXIST;
    place.node->data = data;
    place.node->size = place.node->room = size;
    bytes_held += size;
    return 0;
}

void files_forget(struct node *file) {
    bytes_held -= file->size;
    file->data = NULL;
    file->size = file->room = 0;
}
