// The part of CPython's C API that native/c/interpreter.c uses, over values of our own. The Python of this build is a module that
// was linked elsewhere and exports none of the API: a call of a function sends the arguments to it, and receives the result.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t Py_ssize_t;

enum value_kind { VALUE_NONE, VALUE_FALSE, VALUE_TRUE, VALUE_INTEGER, VALUE_TEXT, VALUE_BYTES, VALUE_TUPLE };

typedef struct value {
    enum value_kind kind;
    uint32_t references;
    union {
        uint64_t integer; // of a negative one, its two's complement
        struct { size_t length; char *data; };
        struct { size_t count; struct value **items; };
    };
} PyObject;

extern PyObject value_none, value_true, value_false;
#define Py_None (&value_none)
#define Py_True (&value_true)

static inline PyObject *Py_NewRef(PyObject *value) {
    value->references++;
    return value;
}
void Py_DECREF(PyObject *value);

PyObject *PyUnicode_DecodeUTF8(const char *data, Py_ssize_t length, const char *errors);
PyObject *PyUnicode_AsEncodedString(PyObject *text, const char *encoding, const char *errors);
PyObject *PyBytes_FromStringAndSize(const char *data, Py_ssize_t length);
int PyBytes_AsStringAndSize(PyObject *bytes, char **data, Py_ssize_t *length);
#define PyBytes_GET_SIZE(bytes) ((Py_ssize_t)(bytes)->length)
#define PyBytes_AS_STRING(bytes) ((bytes)->data)

PyObject *PyLong_FromUnsignedLongLong(unsigned long long integer);
long PyLong_AsLong(PyObject *integer);

PyObject *PyTuple_New(Py_ssize_t count);
#define PyTuple_Check(value) ((value)->kind == VALUE_TUPLE)
#define PyTuple_GET_SIZE(tuple) ((Py_ssize_t)(tuple)->count)
#define PyTuple_GET_ITEM(tuple, at) ((tuple)->items[at])
#define PyTuple_SET_ITEM(tuple, at, item) ((tuple)->items[at] = (item))
// A list arrives as a tuple.
#define PyList_Check(value) false
#define PyList_GET_SIZE(list) PyTuple_GET_SIZE(list)
#define PyList_GET_ITEM(list, at) PyTuple_GET_ITEM(list, at)
#define PySequence_Length(tuple) PyTuple_GET_SIZE(tuple)

// Of the formats only that of a tuple of unsigned integers: `I` and `K`.
PyObject *Py_BuildValue(const char *format, ...);

// A function is known by its name, as a text.
PyObject *PyObject_Vectorcall(PyObject *function, PyObject *const *arguments, size_t count, PyObject *names);
#define PyObject_CallNoArgs(function) PyObject_Vectorcall(function, NULL, 0, NULL)

// No call fails in a way that could be told: where the binding in Python raises, the instance ends.
#define PyErr_Occurred() false
#define PyErr_Print() ((void)0)
