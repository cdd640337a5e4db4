// The file system that a program sees: a tree of nodes in the module's own memory. At the start of each run it has the folder
// `/tmp`, and nothing else. Devices are outside the tree: a path such as `/dev/null` leads to one if the tree has no such file.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wasi/api.h>

struct entry {
    char *name;
    uint32_t length;
    uint32_t hash;
    // Grows within a folder, so that reading goes on where it was although entries come and go.
    uint64_t sequence;
    struct node *node;
};

// Kinds of devices. `NO_DEVICE` is an ordinary file or a folder.
enum device { NO_DEVICE, DEVICE_NULL, DEVICE_ZERO, DEVICE_RANDOM, DEVICE_STDOUT, DEVICE_STDERR };

struct node {
    bool is_folder;
    enum device device;
    uint32_t names;  // entries that lead here
    uint32_t opened; // descriptors that hold it
    uint64_t number;
    __wasi_timestamp_t accessed, modified, changed;
    // A file's
    uint8_t *data;
    size_t size, room;
    // A folder's
    struct node *parent;
    struct entry *entries;
    uint32_t count, space;
    uint64_t next_sequence;
};

// Where a path leads: its last segment within `folder`, and the node it names, if there is one.
struct place {
    struct node *folder;
    const char *name;
    uint32_t length;
    struct node *node;
    bool must_be_folder; // written with a slash at its end
    bool is_of_system;   // outside the tree, so its name stays
};

// Whether it is one of a program's streams, which are pipes.
static inline bool files_is_stream(const struct node *node) {
    return node->device == DEVICE_STDOUT || node->device == DEVICE_STDERR;
}

struct node *files_root(void);

// What all files together may hold, in bytes, and how many files and folders there may be.
void files_limit(uint64_t bytes, uint32_t entries);

__wasi_errno_t files_find(struct node *start, const char *path, size_t length, struct place *place);
__wasi_errno_t files_create(struct place *place, bool folder);
__wasi_errno_t files_link(struct place *place, struct node *node);
__wasi_errno_t files_unlink(struct place *place);
__wasi_errno_t files_remove_folder(struct place *place);
__wasi_errno_t files_rename(struct place *from, struct place *to);

__wasi_errno_t files_resize(struct node *file, uint64_t size);
__wasi_errno_t files_write(struct node *file, uint64_t at, const uint8_t *data, size_t length);
size_t files_read(struct node *file, uint64_t at, uint8_t *data, size_t length);

// Frees what neither a name nor a descriptor leads to.
void files_release(struct node *node);

// Removes a folder's entries and all below them. For the build: nothing of it may be open.
void files_clear(struct node *folder);

// Puts `data`, from malloc, at `path`, with the folders that it needs. For the build; 0 where it worked.
__wasi_errno_t files_stage(const char *path, size_t length, uint8_t *data, size_t size);

// Makes a staged file empty without freeing its data, which the caller keeps. For the build.
void files_forget(struct node *file);
