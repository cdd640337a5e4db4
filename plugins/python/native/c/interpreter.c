// The exports of the world `interpreter-plugin`: values of WIT become the tuples that the driver takes, and its answers
// become values of WIT. plugins/python/README.md has the rule.
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "interpreter_plugin.h"
#include "python.h"

typedef interpreter_plugin_string_t string_t;
typedef exports_rlf_plugin_interpreter_error_t error_t;
typedef exports_rlf_plugin_interpreter_exception_t exception_t;
typedef exports_rlf_plugin_interpreter_outcome_t outcome_t;
typedef exports_rlf_plugin_interpreter_file_t file_t;
typedef exports_rlf_plugin_interpreter_compiled_t compiled_t;
typedef exports_rlf_plugin_interpreter_list_file_t list_file_t;
typedef exports_rlf_plugin_interpreter_list_compiled_t list_compiled_t;
typedef exports_rlf_plugin_interpreter_limits_t limits_t;

enum { MAX_ENTRIES = 100000 };

// What can only fail for want of memory, or where the driver broke its word. There is no way on from either.
static void *must(void *pointer) {
    if (pointer) return pointer;
    if (PyErr_Occurred()) PyErr_Print();
    __builtin_trap();
}

// ----------------------------------------------------------------------------------------- to Python

static PyObject *text(const string_t *s) {
    return must(PyUnicode_DecodeUTF8((const char *)s->ptr, (Py_ssize_t)s->len, "replace"));
}

static PyObject *bytes(const interpreter_plugin_list_u8_t *b) {
    return must(PyBytes_FromStringAndSize((const char *)b->ptr, (Py_ssize_t)b->len));
}

static PyObject *pair(PyObject *first, PyObject *second) {
    PyObject *tuple = must(PyTuple_New(2));
    PyTuple_SET_ITEM(tuple, 0, first);
    PyTuple_SET_ITEM(tuple, 1, second);
    return tuple;
}

static PyObject *texts(const interpreter_plugin_list_string_t *list) {
    PyObject *tuple = must(PyTuple_New((Py_ssize_t)list->len));
    for (size_t i = 0; i < list->len; i++) PyTuple_SET_ITEM(tuple, i, text(&list->ptr[i]));
    return tuple;
}

static PyObject *files(const file_t *list, size_t length) {
    PyObject *tuple = must(PyTuple_New((Py_ssize_t)length));
    for (size_t i = 0; i < length; i++) PyTuple_SET_ITEM(tuple, i, pair(text(&list[i].path), bytes(&list[i].data)));
    return tuple;
}

static PyObject *modules(const compiled_t *list, size_t length) {
    PyObject *tuple = must(PyTuple_New((Py_ssize_t)length));
    for (size_t i = 0; i < length; i++) PyTuple_SET_ITEM(tuple, i, pair(text(&list[i].name), bytes(&list[i].data)));
    return tuple;
}

static PyObject *limits(const limits_t *l) {
    return must(Py_BuildValue("(IKIK)", l->wall_ms, l->memory_bytes, l->output_bytes, l->file_bytes));
}

static void limit_files(const limits_t *l) { files_limit(l->file_bytes ? l->file_bytes : UINT64_MAX, MAX_ENTRIES); }

// --------------------------------------------------------------------------------------- from Python

static PyObject *item(PyObject *sequence, Py_ssize_t at) {
    if (PyTuple_Check(sequence) && at < PyTuple_GET_SIZE(sequence)) return PyTuple_GET_ITEM(sequence, at);
    if (PyList_Check(sequence) && at < PyList_GET_SIZE(sequence)) return PyList_GET_ITEM(sequence, at);
    return must(NULL);
}

static long number(PyObject *value) {
    long n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) must(NULL);
    return n;
}

// The host frees what it was given after it has read it.
static void *copy(const void *data, size_t size) { return size ? memcpy(must(malloc(size)), data, size) : NULL; }

static string_t string(PyObject *value) {
    PyObject *utf8 = must(PyUnicode_AsEncodedString(value, "utf-8", "replace"));
    size_t length = (size_t)PyBytes_GET_SIZE(utf8);
    string_t s = { copy(PyBytes_AS_STRING(utf8), length), length };
    Py_DECREF(utf8);
    return s;
}

static interpreter_plugin_list_u8_t data(PyObject *value) {
    char *start;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(value, &start, &length) < 0) must(NULL);
    return (interpreter_plugin_list_u8_t){ copy(start, (size_t)length), (size_t)length };
}

// An array of as many items as `list` has, zeroed.
static void *array(PyObject *list, size_t size, size_t *length) {
    *length = (size_t)PySequence_Length(list);
    return *length ? must(calloc(*length, size)) : NULL;
}

static list_file_t file_list(PyObject *list) {
    list_file_t files;
    files.ptr = array(list, sizeof *files.ptr, &files.len);
    for (size_t i = 0; i < files.len; i++) {
        PyObject *file = item(list, (Py_ssize_t)i);
        files.ptr[i] = (file_t){ .path = string(item(file, 0)), .data = data(item(file, 1)) };
    }
    return files;
}

static exception_t exception(PyObject *value) {
    return (exception_t){ string(item(value, 0)), string(item(value, 1)), string(item(value, 2)) };
}

static outcome_t outcome(PyObject *value) {
    outcome_t o = { .tag = (uint8_t)number(item(value, 0)) };
    switch (o.tag) {
    case RLF_PLUGIN_CODE_OUTCOME_EXITED: o.val.exited = (int32_t)number(item(value, 1)); break;
    case RLF_PLUGIN_CODE_OUTCOME_RAISED: o.val.raised = exception(item(value, 1)); break;
    case RLF_PLUGIN_CODE_OUTCOME_REJECTED: o.val.rejected = exception(item(value, 1)); break;
    }
    return o;
}

static error_t error(PyObject *value) {
    error_t e = { .tag = (uint8_t)number(item(value, 0)) };
    // All other cases carry one text, in the same place.
    if (e.tag != RLF_PLUGIN_TYPES_ERROR_CANCELLED) e.val.internal = string(item(value, 1));
    return e;
}

// Calls the driver, which takes the arguments over; the payload of its result, and whether it is that of ok.
static PyObject *ask(PyObject *function, PyObject **arguments, size_t count, bool *ok) {
    PyObject *result = must(PyObject_Vectorcall(function, arguments, count, NULL));
    for (size_t i = 0; i < count; i++) Py_DECREF(arguments[i]);
    *ok = number(item(result, 0)) == 0;
    PyObject *payload = Py_NewRef(item(result, 1));
    Py_DECREF(result);
    return payload;
}

// -------------------------------------------------------------------------------------------- exports

bool exports_rlf_plugin_lifecycle_init(string_t *config, error_t *problem) {
    // Where there is nothing to configure, the memory stays as the snapshot has it.
    if (config->len == 2 && memcmp(config->ptr, "{}", 2) == 0) {
        interpreter_plugin_string_free(config);
        return true;
    }
    PyObject *arguments[] = { text(config) };
    interpreter_plugin_string_free(config);
    bool ok;
    PyObject *answer = ask(driver.configure, arguments, 1, &ok);
    if (ok) keep_configured(answer == Py_True);
    else *problem = error(answer);
    Py_DECREF(answer);
    return ok;
}

void exports_rlf_plugin_interpreter_languages(exports_rlf_plugin_interpreter_list_language_t *languages) {
    PyObject *list = must(PyObject_CallNoArgs(driver.languages));
    languages->ptr = array(list, sizeof *languages->ptr, &languages->len);
    for (size_t i = 0; i < languages->len; i++) {
        PyObject *language = item(list, (Py_ssize_t)i);
        languages->ptr[i] = (exports_rlf_plugin_interpreter_language_t){
            .id = string(item(language, 0)),
            .version = string(item(language, 1)),
            .sessions = item(language, 2) == Py_True,
        };
    }
    Py_DECREF(list);
}

bool exports_rlf_plugin_interpreter_compile(string_t *language, string_t *name, string_t *source, compiled_t *compiled,
                                            exception_t *problem) {
    PyObject *arguments[] = { text(language), text(name), text(source) };
    interpreter_plugin_string_free(language);
    interpreter_plugin_string_free(name);
    interpreter_plugin_string_free(source);
    bool ok;
    PyObject *answer = ask(driver.compile, arguments, 3, &ok);
    if (ok) *compiled = (compiled_t){ .name = string(item(answer, 0)), .data = data(item(answer, 1)) };
    else *problem = exception(answer);
    Py_DECREF(answer);
    return ok;
}

bool exports_rlf_plugin_interpreter_execute(exports_rlf_plugin_interpreter_program_t *program,
                                            exports_rlf_plugin_interpreter_run_t *run, error_t *problem) {
    join_written_pages();
    limit_files(&program->limits);
    PyObject *fields[] = {
        text(&program->language),
        text(&program->code),
        texts(&program->arguments),
        bytes(&program->stdin_),
        files(program->files.ptr, program->files.len),
        texts(&program->fetch),
        modules(program->modules.ptr, program->modules.len),
        must(PyLong_FromUnsignedLongLong(program->seed)),
        limits(&program->limits),
    };
    enum { FIELDS = sizeof fields / sizeof *fields };
    exports_rlf_plugin_interpreter_program_free(program);
    PyObject *tuple = must(PyTuple_New(FIELDS));
    for (size_t i = 0; i < FIELDS; i++) PyTuple_SET_ITEM(tuple, i, fields[i]);
    bool ok;
    PyObject *answer = ask(driver.execute, &tuple, 1, &ok);
    if (ok) *run = (exports_rlf_plugin_interpreter_run_t){ .outcome = outcome(item(answer, 0)), .files = file_list(item(answer, 1)) };
    else *problem = error(answer);
    // The instance ends here: freeing anything would only write to its pages.
    return ok;
}

// -------------------------------------------------------------------------------------------- sessions

struct exports_rlf_plugin_interpreter_session_t {
    PyObject *session;
};

bool exports_rlf_plugin_interpreter_static_session_open(string_t *language, list_file_t *placed, list_compiled_t *offered,
                                                        uint64_t seed,
                                                        exports_rlf_plugin_interpreter_own_session_t *opened,
                                                        error_t *problem) {
    join_written_pages();
    files_limit(UINT64_MAX, MAX_ENTRIES);
    PyObject *arguments[] = { text(language), files(placed->ptr, placed->len),
                              modules(offered->ptr, offered->len), must(PyLong_FromUnsignedLongLong(seed)) };
    interpreter_plugin_string_free(language);
    exports_rlf_plugin_interpreter_list_file_free(placed);
    exports_rlf_plugin_interpreter_list_compiled_free(offered);
    bool ok;
    PyObject *answer = ask(driver.open, arguments, 4, &ok);
    if (ok) {
        exports_rlf_plugin_interpreter_session_t *session = must(malloc(sizeof *session));
        session->session = answer;
        *opened = exports_rlf_plugin_interpreter_session_new(session);
    } else {
        *problem = error(answer);
        Py_DECREF(answer);
    }
    return ok;
}

void exports_rlf_plugin_interpreter_session_destructor(exports_rlf_plugin_interpreter_session_t *session) {
    Py_DECREF(session->session);
    free(session);
}

bool exports_rlf_plugin_interpreter_method_session_execute(exports_rlf_plugin_interpreter_session_t *session, string_t *code,
                                                           limits_t *given, exports_rlf_plugin_interpreter_cell_t *cell,
                                                           error_t *problem) {
    limit_files(given);
    PyObject *arguments[] = { Py_NewRef(session->session), text(code), limits(given) };
    interpreter_plugin_string_free(code);
    bool ok;
    PyObject *answer = ask(driver.session_execute, arguments, 3, &ok);
    if (ok) {
        PyObject *value = item(answer, 1), *displays = item(answer, 2);
        *cell = (exports_rlf_plugin_interpreter_cell_t){ .outcome = outcome(item(answer, 0)) };
        cell->value.is_some = value != Py_None;
        if (cell->value.is_some) cell->value.val = string(value);
        cell->displays.ptr = array(displays, sizeof *cell->displays.ptr, &cell->displays.len);
        for (size_t i = 0; i < cell->displays.len; i++) {
            PyObject *display = item(displays, (Py_ssize_t)i);
            cell->displays.ptr[i].media_type = string(item(display, 0));
            cell->displays.ptr[i].data = data(item(display, 1));
        }
    } else {
        *problem = error(answer);
    }
    Py_DECREF(answer);
    return ok;
}

void exports_rlf_plugin_interpreter_method_session_fetch(exports_rlf_plugin_interpreter_session_t *session,
                                                         interpreter_plugin_list_string_t *paths, list_file_t *found) {
    PyObject *arguments[] = { Py_NewRef(session->session), texts(paths) };
    interpreter_plugin_list_string_free(paths);
    PyObject *list = must(PyObject_Vectorcall(driver.session_fetch, arguments, 2, NULL));
    for (size_t i = 0; i < 2; i++) Py_DECREF(arguments[i]);
    *found = file_list(list);
    Py_DECREF(list);
}
