// Carries calls of the driver to a Python that was linked elsewhere, and starts that Python for the snapshot.
//
// The Python runs code that it is given as text, and its module `_host` sends bytes here and receives bytes. So a call of the
// driver runs a line that asks for the call, makes it and sends its result: binding/rlf_science.py.
#include "Python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "python.h"
#include "values.h"
#include "wasi.h"

#define FROM_PYTHON(name) __attribute__((import_module("python"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

FROM_PYTHON("_initialize") void python_initialize(void);
// Runs code. Its status is 0, or another if the code raised.
FROM_PYTHON("turn") int32_t python_turn(const char *code, size_t length);
// Memory of the Python's for a text that it is given or for an answer of `host_call`, which it frees itself.
FROM_PYTHON("host_alloc") void *python_allocate(size_t size);

#define LIBRARY "/usr/local/lib/python315.zip"

static void fail(const char *what) {
    fprintf(stderr, "snapshot: %s failed\n", what);
    fflush(stderr);
    abort();
}

static void run(const char *code) {
    size_t length = strlen(code);
    char *copy = python_allocate(length);
    if (!copy) __builtin_trap();
    memcpy(copy, code, length);
    if (python_turn(copy, length)) __builtin_trap();
}

// ------------------------------------------------------------------------------------ calls of the driver

static PyObject names[] = {
#define NAME(text) { VALUE_TEXT, 1, { .length = sizeof text - 1, .data = text } }
    NAME("configure"), NAME("languages"), NAME("compile"), NAME("execute"),
    NAME("open"), NAME("session_execute"), NAME("session_fetch"),
};

struct driver driver = { &names[0], &names[1], &names[2], &names[3], &names[4], &names[5], &names[6] };

// The call that is being made, and its result.
static struct bytes call;
static PyObject *result;

PyObject *PyObject_Vectorcall(PyObject *function, PyObject *const *arguments, size_t count, PyObject *keywords) {
    call.length = 0;
    values_write_byte(&call, '(');
    values_write_word(&call, 2);
    values_write(&call, function);
    values_write_byte(&call, '(');
    values_write_word(&call, (uint32_t)count);
    for (size_t i = 0; i < count; i++) values_write(&call, arguments[i]);
    run("__import__('rlf_science').serve()");
    PyObject *answer = result;
    if (!answer) __builtin_trap();
    result = NULL;
    return answer;
}

// The library's archive, for as long as the instance lives.
static uint8_t *library;
static size_t library_size;

static int32_t give(const void *data, size_t length, void **out, size_t *out_length) {
    char *copy = python_allocate(length ? length : 1);
    if (!copy) return -2;
    memcpy(copy, data, length);
    *out = copy;
    *out_length = length;
    return 0;
}

// Reference counts of CPython with pointers of 32 bits: the one of an immortal object, and the least that is not counted.
enum { IMMORTAL = 5 << 28, LEAST_IMMORTAL = 1 << 30 };

// Makes the objects at these addresses immortal. The answer has a byte for each: 1 if it was not yet.
static int32_t keep(const uint8_t *addresses, size_t count, void **out, size_t *out_length) {
    uint8_t *were_mortal = python_allocate(count ? count : 1);
    if (!were_mortal) return -2;
    for (size_t i = 0; i < count; i++) {
        uint32_t address;
        memcpy(&address, addresses + i * sizeof address, sizeof address);
        uint32_t *references = (uint32_t *)(uintptr_t)address;
        were_mortal[i] = *references < LEAST_IMMORTAL;
        if (were_mortal[i]) *references = IMMORTAL;
    }
    *out = were_mortal;
    *out_length = count;
    return 0;
}

// What `_host.call` in Python sends. The first byte says what it wants: the call that is being made, to send its result, to keep
// objects, or a piece of the library. A program that finds this can spoil its own instance only.
EXPORT("host-call") int32_t host_call(const uint8_t *request, size_t length, void **out, size_t *out_length) {
    if (length == 0) return -2;
    if (request[0] == '?') return give(call.data, call.length, out, out_length);
    if (request[0] == '=') {
        if (result) Py_DECREF(result);
        result = values_read(request + 1, length - 1);
        return result ? give("", 0, out, out_length) : -2;
    }
    if (request[0] == 'K') return keep(request + 1, (length - 1) / sizeof(uint32_t), out, out_length);
    uint32_t piece[2];
    if (request[0] == 'L' && length == 1 + sizeof piece) {
        memcpy(piece, request + 1, sizeof piece);
        if (piece[0] > library_size || piece[1] > library_size - piece[0]) return -2;
        return give(library + piece[0], piece[1], out, out_length);
    }
    return -2;
}

void join_written_pages(void) {}

void keep_configured(bool waiting) {}

// --------------------------------------------------------------------------------------- the snapshot

extern void __wasm_call_ctors(void);

EXPORT("stage") uint32_t stage(const char *path, size_t length, uint8_t *data, size_t size) {
    files_limit(UINT64_MAX, UINT32_MAX);
    return files_stage(path, length, data, size);
}

EXPORT("allocate") void *allocate(size_t size) { return malloc(size ? size : 1); }

EXPORT("snapshot") void snapshot(void) {
    __wasm_call_ctors();
    struct place archive;
    if (files_find(files_root(), LIBRARY, sizeof LIBRARY - 1, &archive) || !archive.node) fail("finding the library");
    library = archive.node->data;
    library_size = archive.node->size;
    python_initialize();
    run("import sys; sys.path[:0] = ['/driver', '/packages', '/binding']; import rlf_science; rlf_science.prepare()");
    run("__import__('rlf_science').tidy()");
    if (wasi_has_open_files()) fail("closing all files");
    files_forget(archive.node);
    files_clear(files_root());
    struct place temporary;
    if (files_find(files_root(), "/tmp", 4, &temporary) || files_create(&temporary, true)) fail("making /tmp");
}
