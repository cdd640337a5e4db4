// Starts CPython, lets the driver prepare itself, and arranges memory so that an instance of the snapshot writes to as
// few of its pages as can be: each page that a run writes to is copied first, and costs about a microsecond.
#define Py_BUILD_CORE 1
#include <Python.h>

#include "internal/pycore_ceval.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_gc.h"
#include "internal/pycore_global_objects.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_object.h"
#include "internal/pycore_obmalloc.h"
#include "internal/pycore_opcode_metadata.h"
#include "internal/pycore_runtime.h"
#include "internal/pycore_typeobject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "host.h"
#include "python.h"
#include "wasi.h"

#define PREFIX "/usr"
#define LIBRARY PREFIX "/lib/python3.13"
#define DRIVER "/driver"
#define PACKAGES "/packages"

struct driver driver;

static void fail(const char *what) {
    fprintf(stderr, "snapshot: %s failed\n", what);
    if (PyErr_Occurred()) PyErr_Print();
    fflush(stderr);
    abort();
}

static void check(PyStatus status, const char *what) {
    if (!PyStatus_Exception(status)) return;
    fprintf(stderr, "snapshot: %s\n", status.err_msg ? status.err_msg : "no message");
    fail(what);
}

// ------------------------------------------------------------------- the driver's way to the host

static PyObject *module_write(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_buffer data;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "write(fd, data)");
        return NULL;
    }
    long fd = PyLong_AsLong(args[0]);
    if (fd == -1 && PyErr_Occurred()) return NULL;
    if (PyObject_GetBuffer(args[1], &data, PyBUF_SIMPLE) < 0) return NULL;
    host_write((uint8_t)fd, data.buf, (size_t)data.len);
    PyBuffer_Release(&data);
    Py_RETURN_NONE;
}

static PyObject *module_exit(PyObject *self, PyObject *code) {
    long n = PyLong_AsLong(code);
    if (n == -1 && PyErr_Occurred()) return NULL;
    host_exit((int32_t)n);
    Py_UNREACHABLE();
}

static PyObject *refused(const char *what) {
    PyErr_Format(PyExc_LookupError, "there is no %s", what);
    return NULL;
}

static PyObject *module_entries(PyObject *self, PyObject *slot) {
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(slot, &length);
    if (!name) return NULL;
    host_entries_t entries;
    host_error_t error;
    if (!host_entries(name, (size_t)length, &entries, &error)) return refused("such data slot");
    PyObject *list = PyList_New((Py_ssize_t)entries.len);
    for (size_t i = 0; list && i < entries.len; i++) {
        PyObject *pair = Py_BuildValue("(s#K)", (const char *)entries.ptr[i].path.ptr, (Py_ssize_t)entries.ptr[i].path.len,
                                       (unsigned long long)entries.ptr[i].size);
        if (!pair) Py_CLEAR(list);
        else PyList_SET_ITEM(list, (Py_ssize_t)i, pair);
    }
    rlf_plugin_data_list_entry_free(&entries);
    return list;
}

static PyObject *module_read(PyObject *self, PyObject *args) {
    const char *slot, *path;
    Py_ssize_t slot_length, path_length;
    unsigned long long offset;
    unsigned int length;
    if (!PyArg_ParseTuple(args, "s#s#KI", &slot, &slot_length, &path, &path_length, &offset, &length)) return NULL;
    interpreter_plugin_list_u8_t data;
    host_error_t error;
    if (!host_read(slot, (size_t)slot_length, path, (size_t)path_length, offset, length, &data, &error))
        return refused("such file in the data slot");
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)data.ptr, (Py_ssize_t)data.len);
    interpreter_plugin_list_u8_free(&data);
    return bytes;
}

static PyObject *module_ask(PyObject *self, PyObject *args) {
    const char *kind, *requests;
    Py_ssize_t kind_length, length;
    if (!PyArg_ParseTuple(args, "s#s#", &kind, &kind_length, &requests, &length)) return NULL;
    interpreter_plugin_string_t answers;
    host_ask(kind, (size_t)kind_length, requests, (size_t)length, &answers);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)answers.ptr, (Py_ssize_t)answers.len, "strict");
    interpreter_plugin_string_free(&answers);
    return text;
}

static PyMethodDef methods[] = {
    { "write", (PyCFunction)(void (*)(void))module_write, METH_FASTCALL, "process.write" },
    { "exit", module_exit, METH_O, "process.exit" },
    { "entries", module_entries, METH_O, "data.entries" },
    { "read", module_read, METH_VARARGS, "data.read" },
    { "ask", module_ask, METH_VARARGS, "gates.ask" },
    { NULL },
};

static PyModuleDef definition = { PyModuleDef_HEAD_INIT, .m_name = "host", .m_size = -1, .m_methods = methods };

// ------------------------------------------------------------------------------------ starting up

// The compiled part of pydantic, which is written in Rust.
PyMODINIT_FUNC PyInit__pydantic_core(void);

static void start(void) {
    if (PyImport_AppendInittab("pydantic_core._pydantic_core", PyInit__pydantic_core)) fail("the table of modules");
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    check(Py_PreInitialize(&before), "pre-initialisation");

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.write_bytecode = 0;
    config.install_signal_handlers = 0;
    // Strings keep their hashes in the snapshot, so that these cannot depend on a run's seed.
    config.use_hash_seed = 1;
    config.hash_seed = 0;
    config.module_search_paths_set = 1;
    struct { wchar_t **field; const wchar_t *value; } paths[] = {
        { &config.executable, L"" PREFIX "/bin/python3" },
        { &config.base_executable, L"" PREFIX "/bin/python3" },
        { &config.home, L"" PREFIX },
        { &config.prefix, L"" PREFIX },
        { &config.base_prefix, L"" PREFIX },
        { &config.exec_prefix, L"" PREFIX },
        { &config.base_exec_prefix, L"" PREFIX },
        { &config.stdlib_dir, L"" LIBRARY },
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        check(PyConfig_SetString(&config, paths[i].field, paths[i].value), "a path of the configuration");
    check(PyWideStringList_Append(&config.module_search_paths, L"" DRIVER), "the driver's path");
    check(PyWideStringList_Append(&config.module_search_paths, L"" PACKAGES), "the path of what loaded files import");
    check(PyWideStringList_Append(&config.module_search_paths, L"" LIBRARY), "the library's path");
    check(Py_InitializeFromConfig(&config), "initialisation");
    PyConfig_Clear(&config);
}

static PyObject *attribute(PyObject *from, const char *name) {
    PyObject *found = PyObject_GetAttrString(from, name);
    if (!found) fail(name);
    return found;
}

static void prepare(void) {
    // `sysconfig` reads a module about the build, of which there are as many as there are platforms and which no run
    // could find: what it says is remembered from here on.
    PyObject *sysconfig = PyImport_ImportModule("sysconfig");
    PyObject *variables = sysconfig ? PyObject_CallMethod(sysconfig, "get_config_vars", NULL) : NULL;
    if (!variables) fail("sysconfig.get_config_vars");
    PyObject *host = PyModule_Create(&definition);
    PyObject *module = host ? PyImport_ImportModule("rlf_driver") : NULL;
    if (!module) fail("importing the driver");
    PyObject *done = PyObject_CallMethod(module, "prepare", "Os", host, LIBRARY);
    if (!done) fail("rlf_driver.prepare");
    Py_DECREF(done);
    driver.configure = attribute(module, "configure");
    driver.languages = attribute(module, "languages");
    driver.compile = attribute(module, "compile");
    driver.execute = attribute(module, "execute");
    PyObject *session = attribute(module, "Session");
    driver.open = attribute(session, "open");
    driver.session_execute = attribute(session, "execute");
    driver.session_fetch = attribute(session, "fetch");
}

// -------------------------------------------------------------------------------- immortal objects
// All that exists after start-up is kept for good: an instance ends with its run. A reference to an immortal object is
// neither counted nor written, so that reading the object leaves its page as it is.

struct list { PyObject **items; size_t count, room; };
static struct list pending, driver_functions;
static size_t immortals;

static void append(struct list *list, PyObject *object) {
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 1 << 10;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        if (!list->items) abort();
    }
    list->items[list->count++] = object;
}

static bool is_of_driver(const PyCodeObject *code) {
    return PyUnicode_IS_ASCII(code->co_filename) &&
           strncmp(PyUnicode_DATA(code->co_filename), DRIVER "/", sizeof DRIVER) == 0;
}

static int make_immortal(PyObject *object, void *unused) {
    if (!object || _Py_IsImmortal(object)) return 0;
    object->ob_refcnt = _Py_IMMORTAL_REFCNT;
    immortals++;
    append(&pending, object);
    if (PyFunction_Check(object) && is_of_driver((PyCodeObject *)PyFunction_GET_CODE(object)))
        append(&driver_functions, object);
    return 0;
}

static void make_code_immortal(PyCodeObject *code) {
    // Code is not tracked by the collector and cannot be traversed.
    PyObject *parts[] = {
        code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames, code->co_localspluskinds,
        code->co_filename, code->co_name, code->co_qualname, code->co_linetable,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) make_immortal(parts[i], NULL);
    if (code->_co_cached) {
        make_immortal(code->_co_cached->_co_code, NULL);
        make_immortal(code->_co_cached->_co_varnames, NULL);
        make_immortal(code->_co_cached->_co_cellvars, NULL);
        make_immortal(code->_co_cached->_co_freevars, NULL);
    }
}

// What the first run of a function would note in its code: that nothing watches it, as nothing does.
static void resume_checked(PyCodeObject *code) {
    uintptr_t events = PyThreadState_Get()->eval_breaker & ~(uintptr_t)_PY_EVAL_EVENTS_MASK;
    if (code->_co_instrumentation_version != events) return;
    _Py_CODEUNIT *instructions = _PyCode_CODE(code);
    for (Py_ssize_t i = 0; i < Py_SIZE(code); i++) {
        uint8_t opcode = instructions[i].op.code;
        if (opcode == RESUME) instructions[i].op.code = RESUME_CHECK;
        i += _PyOpcode_Caches[_PyOpcode_Deopt[opcode]];
    }
}

static void make_reachable_immortal(PyObject *from) {
    if (!from) return;
    make_immortal(from, NULL);
    // What was immortal before may have come to refer to what is not.
    append(&pending, from);
    while (pending.count) {
        PyObject *object = pending.items[--pending.count];
        PyTypeObject *type = Py_TYPE(object);
        make_immortal((PyObject *)type, NULL);
        if (PyCode_Check(object)) {
            make_code_immortal((PyCodeObject *)object);
            resume_checked((PyCodeObject *)object);
        }
        if (!type->tp_traverse || !PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC)) continue;
        // Static types say so: they are not to be traversed.
        if (type->tp_is_gc && !type->tp_is_gc(object)) continue;
        type->tp_traverse(object, make_immortal, NULL);
    }
}

// Static types are not traversed. And a type that nobody has asked for an attribute has no version yet: the first who does
// would write it, to the type and to all that it derives from.
static void make_type_immortal(PyTypeObject *type) {
    PyUnstable_Type_AssignVersionTag(type);
    make_reachable_immortal((PyObject *)type);
    make_reachable_immortal(type->tp_mro);
    make_reachable_immortal(type->tp_bases);
    managed_static_type_state *state = NULL;
    if (type->tp_flags & _Py_TPFLAGS_STATIC_BUILTIN) state = _PyStaticType_GetState(PyInterpreterState_Get(), type);
    if (state) {
        make_reachable_immortal(state->tp_dict);
        make_reachable_immortal(state->tp_subclasses);
    }
    PyObject *derived = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", type);
    if (!derived) fail("type.__subclasses__");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(derived); i++) make_type_immortal((PyTypeObject *)PyList_GET_ITEM(derived, i));
    Py_DECREF(derived);
}

static void make_all_immortal(void) {
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *thawed = gc ? PyObject_CallMethod(gc, "unfreeze", NULL) : NULL;
    PyObject *tracked = thawed ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    if (!tracked) fail("gc.get_objects");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tracked); i++) make_reachable_immortal(PyList_GET_ITEM(tracked, i));
    make_type_immortal(&PyBaseObject_Type);
    // Names that nothing tracked leads to, such as those of C functions' keywords. Who interns one that is not known to be
    // immortal notes in it that it is.
    PyObject *key, *value, *names = _Py_INTERP_CACHED_OBJECT(PyInterpreterState_Get(), interned_strings);
    for (Py_ssize_t at = 0; PyDict_Next(names, &at, &key, &value);) {
        make_reachable_immortal(key);
        _PyASCIIObject_CAST(key)->state.interned = SSTATE_INTERNED_IMMORTAL;
    }
    // Nor those that the cache of attributes holds, until another takes their place.
    struct type_cache *cache = &PyInterpreterState_Get()->types.type_cache;
    for (size_t i = 0; i < 1 << MCACHE_SIZE_EXP; i++) make_reachable_immortal(cache->hashtable[i].name);
    free(pending.items);
    pending = (struct list){ 0 };
    Py_DECREF(tracked);
    PyObject *frozen = PyObject_CallMethod(gc, "freeze", NULL);
    if (!frozen) fail("gc.freeze");
    Py_DECREF(frozen);
    Py_DECREF(gc);
}

// ------------------------------------------------------------------------------- holes in the heap
// What a run allocates should lie together, not in the holes that start-up left all over the heap. So every hole is taken,
// and emptied, as what is zero takes no room in the snapshot.

static void *take(size_t size) { return memset(PyObject_Malloc(size), 0, size); }

static void fill_pools(void) {
    struct _obmalloc_state *state = PyInterpreterState_Get()->obmalloc;
    for (int round = 0; round < 2; round++) {
        for (unsigned k = 0; k < NB_SMALL_SIZE_CLASSES; k++)
            for (poolp pool; pool = state->pools.used[k + k], pool != pool->nextpool;)
                take((k + 1) << ALIGNMENT_SHIFT);
        // Whole pools are taken by the largest class, the last of which the second round fills.
        if (round == 0)
            while (state->mgmt.usable_arenas) take(SMALL_REQUEST_THRESHOLD);
    }
}

static void fill_bins(void) {
    char *top = malloc(4 << 20); // at the end of the heap, as no hole is that large
    if (!top) abort();
    free(top);
    for (size_t size = 4 << 20; size >= 8; size -= size > 4096 ? size / 8 : 8) {
        for (;;) {
            char *hole = malloc(size);
            if (!hole) abort();
            if (hole >= top - 64) {
                memset(hole, 0, size);
                free(hole);
                break;
            }
            memset(hole, 0, size);
        }
    }
}

// ---------------------------------------------------------------------------------- where runs write
// The host sets back what a run wrote to by copying it, the lowest pieces of memory first, and only so many; behind them all is
// unmapped and has to be faulted in again. So what every run writes to lies together, and low: the runtime's state, and behind
// it the room from which a run's first megabytes come, which is the first that was ever allocated. What `configure` loads fills
// that room, so another one behind it is given to the sessions of what has been loaded.

enum { ROOM_BYTES = 2 << 20, PAGE_BYTES = 4096 };

static void *room, *room_of_configured;

static void give(void *room) {
    free(room);
    // A first arena from there.
    PyObject_Malloc(SMALL_REQUEST_THRESHOLD);
}

extern char __heap_base;

static bool sessions_wait;

// Makes one piece of the dozen that a run writes to in the runtime's state. Not in the sessions of an environment: many of
// them wait at a time, and that is 30 pages for each.
void join_written_pages(void) {
    if (sessions_wait) return;
    uintptr_t end = (uintptr_t)&__heap_base;
    for (uintptr_t at = (uintptr_t)&_PyRuntime & -(uintptr_t)PAGE_BYTES; at < end; at += PAGE_BYTES) {
        volatile char *page = (volatile char *)at;
        *page = *page;
    }
}

// See patches/kept-names.patch.
extern PyObject *_PyUnicode_KeptNames;

static void keep_names(void) {
    enum { NAMES_OF_A_RUN = 600 };
    PyObject **names = &_Py_INTERP_CACHED_OBJECT(PyInterpreterState_Get(), interned_strings);
    if (!_PyUnicode_KeptNames) _PyUnicode_KeptNames = *names;
    else if (PyDict_Update(_PyUnicode_KeptNames, *names) < 0) fail("keeping names");
    *names = _PyDict_NewPresized(NAMES_OF_A_RUN);
    if (!*names) fail("a table for names");
    fprintf(stderr, "snapshot: %zd names\n", PyDict_GET_SIZE(_PyUnicode_KeptNames));
}

// -------------------------------------------------------------------------------- the driver's code
// Code that runs counts in itself until it is specialised, and some never is. The driver's functions run in every run, so
// their code is moved to where a run writes anyway.

static size_t size_of(const PyCodeObject *code) {
    return _Py_SIZE_ROUND_UP(_PyObject_VAR_SIZE(Py_TYPE(code), Py_SIZE(code)), 16);
}

static void gather_driver(void) {
    size_t total = 0;
    for (size_t i = 0; i < driver_functions.count; i++)
        total += size_of((PyCodeObject *)PyFunction_GET_CODE(driver_functions.items[i]));
    char *at = malloc(total);
    if (!at) abort();
    for (size_t i = 0; i < driver_functions.count; i++) {
        PyFunctionObject *function = (PyFunctionObject *)driver_functions.items[i];
        PyCodeObject *code = (PyCodeObject *)function->func_code;
        // Both are immortal, and nothing points into a code object but frames, of which there are none.
        memcpy(at, code, size_of(code));
        function->func_code = (PyObject *)at;
        at += size_of(code);
    }
    fprintf(stderr, "snapshot: %zu functions of the driver, %zu bytes of code\n", driver_functions.count, total);
    fflush(stderr);
}

extern void __wasm_call_ctors(void);

__attribute__((export_name("stage"))) uint32_t stage(const char *path, size_t length, uint8_t *data, size_t size) {
    files_limit(UINT64_MAX, UINT32_MAX);
    return files_stage(path, length, data, size);
}

__attribute__((export_name("allocate"))) void *allocate(size_t size) {
    if (!room) {
        room = malloc(ROOM_BYTES);
        room_of_configured = malloc(ROOM_BYTES);
    }
    return room && room_of_configured ? malloc(size ? size : 1) : NULL;
}

// Everything that is there is kept, and what comes after it lies together.
static void keep_all(void) {
    PyGC_Collect();
    make_all_immortal();
    _PyGC_ClearAllFreeLists(PyInterpreterState_Get());
    fill_pools();
    fill_bins();
}

__attribute__((export_name("snapshot"))) void snapshot(void) {
    __wasm_call_ctors();
    start();
    prepare();
    if (wasi_has_open_files()) fail("closing all files");
    files_clear(files_root());
    struct place temporary;
    if (files_find(files_root(), "/tmp", 4, &temporary) || files_create(&temporary, true)) fail("making /tmp");
    keep_all();
    fprintf(stderr, "snapshot: %zu objects\n", immortals);
    fflush(stderr);
    give(room);
    gather_driver();
    keep_names();
    fprintf(stderr, "snapshot: runs write from %p on; their room begins at %p\n", (void *)&_PyRuntime, room);
    fflush(stderr);
}

// What `configure` left is kept like all else.
void keep_configured(bool waiting) {
    keep_all();
    if (room_of_configured) give(room_of_configured);
    room_of_configured = NULL;
    keep_names();
    sessions_wait = waiting;
}
