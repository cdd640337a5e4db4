#include "values.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// Deeper tuples than the driver's answers have are not read.
enum { MAX_DEPTH = 16, DIGIT_BITS = 15 };

PyObject value_none = { VALUE_NONE, 1 }, value_true = { VALUE_TRUE, 1 }, value_false = { VALUE_FALSE, 1 };

static void *must(void *pointer) {
    if (!pointer) __builtin_trap();
    return pointer;
}

static PyObject *new(enum value_kind kind) {
    PyObject *value = must(calloc(1, sizeof *value));
    value->kind = kind;
    value->references = 1;
    return value;
}

void Py_DECREF(PyObject *value) {
    if (--value->references) return;
    if (value->kind == VALUE_TUPLE) {
        for (size_t i = 0; i < value->count; i++) Py_DECREF(value->items[i]);
        free(value->items);
    } else if (value->kind == VALUE_TEXT || value->kind == VALUE_BYTES) {
        free(value->data);
    }
    free(value);
}

static PyObject *copied(enum value_kind kind, const char *data, size_t length) {
    PyObject *value = new(kind);
    value->length = length;
    value->data = must(malloc(length ? length : 1));
    memcpy(value->data, data, length);
    return value;
}

PyObject *PyUnicode_DecodeUTF8(const char *data, Py_ssize_t length, const char *errors) {
    return copied(VALUE_TEXT, data, (size_t)length);
}

PyObject *PyBytes_FromStringAndSize(const char *data, Py_ssize_t length) {
    return copied(VALUE_BYTES, data, (size_t)length);
}

// The text as bytes, with `?` for each half of a surrogate pair. These are all that `marshal` writes and UTF-8 does not have.
PyObject *PyUnicode_AsEncodedString(PyObject *text, const char *encoding, const char *errors) {
    if (text->kind != VALUE_TEXT) return NULL;
    PyObject *bytes = new(VALUE_BYTES);
    bytes->data = must(malloc(text->length ? text->length : 1));
    for (size_t i = 0; i < text->length; i++) {
        const uint8_t *at = (const uint8_t *)text->data + i;
        if (at[0] == 0xed && i + 2 < text->length && at[1] >= 0xa0) {
            bytes->data[bytes->length++] = '?';
            i += 2;
        } else {
            bytes->data[bytes->length++] = text->data[i];
        }
    }
    return bytes;
}

int PyBytes_AsStringAndSize(PyObject *bytes, char **data, Py_ssize_t *length) {
    if (bytes->kind != VALUE_BYTES) return -1;
    *data = bytes->data;
    *length = (Py_ssize_t)bytes->length;
    return 0;
}

PyObject *PyLong_FromUnsignedLongLong(unsigned long long integer) {
    PyObject *value = new(VALUE_INTEGER);
    value->integer = integer;
    return value;
}

long PyLong_AsLong(PyObject *integer) {
    if (integer->kind != VALUE_INTEGER) __builtin_trap();
    return (long)integer->integer;
}

PyObject *PyTuple_New(Py_ssize_t count) {
    PyObject *tuple = new(VALUE_TUPLE);
    tuple->count = (size_t)count;
    tuple->items = must(calloc(count ? (size_t)count : 1, sizeof *tuple->items));
    return tuple;
}

PyObject *Py_BuildValue(const char *format, ...) {
    size_t count = strlen(format) - 2;
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    va_list values;
    va_start(values, format);
    for (size_t i = 0; i < count; i++) {
        unsigned long long integer =
            format[i + 1] == 'K' ? va_arg(values, unsigned long long) : va_arg(values, unsigned int);
        PyTuple_SET_ITEM(tuple, i, PyLong_FromUnsignedLongLong(integer));
    }
    va_end(values);
    return tuple;
}

// ---------------------------------------------------------------------------------------- to bytes

static uint8_t *more(struct bytes *to, size_t length) {
    if (to->room - to->length < length) {
        to->room = (to->length + length) * 2;
        to->data = must(realloc(to->data, to->room));
    }
    uint8_t *at = to->data + to->length;
    to->length += length;
    return at;
}

void values_write_byte(struct bytes *to, uint8_t byte) { *more(to, 1) = byte; }

void values_write_word(struct bytes *to, uint32_t word) { memcpy(more(to, sizeof word), &word, sizeof word); }

static void write_integer(struct bytes *to, uint64_t integer) {
    values_write_byte(to, 'l');
    uint32_t digits = 0;
    for (uint64_t rest = integer; rest; rest >>= DIGIT_BITS) digits++;
    values_write_word(to, digits);
    for (; integer; integer >>= DIGIT_BITS) {
        uint16_t digit = integer & ((1 << DIGIT_BITS) - 1);
        memcpy(more(to, sizeof digit), &digit, sizeof digit);
    }
}

void values_write(struct bytes *to, const PyObject *value) {
    switch (value->kind) {
    case VALUE_NONE: values_write_byte(to, 'N'); break;
    case VALUE_FALSE: values_write_byte(to, 'F'); break;
    case VALUE_TRUE: values_write_byte(to, 'T'); break;
    case VALUE_INTEGER: write_integer(to, value->integer); break;
    case VALUE_TEXT:
    case VALUE_BYTES:
        values_write_byte(to, value->kind == VALUE_TEXT ? 'u' : 's');
        values_write_word(to, (uint32_t)value->length);
        memcpy(more(to, value->length), value->data, value->length);
        break;
    case VALUE_TUPLE:
        values_write_byte(to, '(');
        values_write_word(to, (uint32_t)value->count);
        for (size_t i = 0; i < value->count; i++) values_write(to, value->items[i]);
        break;
    }
}

// -------------------------------------------------------------------------------------- from bytes

struct reader {
    const uint8_t *at, *end;
};

static bool read(struct reader *from, void *to, size_t length) {
    if ((size_t)(from->end - from->at) < length) return false;
    memcpy(to, from->at, length);
    from->at += length;
    return true;
}

static PyObject *read_value(struct reader *from, int depth);

static PyObject *read_items(struct reader *from, int depth) {
    uint32_t count;
    // Each item has a byte at least.
    if (!depth || !read(from, &count, sizeof count) || count > (size_t)(from->end - from->at)) return NULL;
    PyObject *tuple = PyTuple_New(count);
    for (tuple->count = 0; tuple->count < count; tuple->count++) {
        PyObject *item = read_value(from, depth - 1);
        if (!item) {
            Py_DECREF(tuple);
            return NULL;
        }
        tuple->items[tuple->count] = item;
    }
    return tuple;
}

static PyObject *read_long(struct reader *from) {
    int32_t digits;
    if (!read(from, &digits, sizeof digits)) return NULL;
    uint64_t integer = 0;
    for (int32_t i = 0; i < (digits < 0 ? -digits : digits); i++) {
        uint16_t digit;
        if (!read(from, &digit, sizeof digit)) return NULL;
        if (i * DIGIT_BITS < 64) integer |= (uint64_t)digit << i * DIGIT_BITS;
    }
    return PyLong_FromUnsignedLongLong(digits < 0 ? -integer : integer);
}

static PyObject *read_value(struct reader *from, int depth) {
    uint8_t type;
    uint32_t length;
    int32_t integer;
    if (!read(from, &type, 1)) return NULL;
    switch (type) {
    case 'N': return Py_NewRef(&value_none);
    case 'F': return Py_NewRef(&value_false);
    case 'T': return Py_NewRef(&value_true);
    case 'i': return read(from, &integer, sizeof integer) ? PyLong_FromUnsignedLongLong((uint64_t)(int64_t)integer) : NULL;
    case 'l': return read_long(from);
    case 'u':
    case 't':
    case 's':
        if (!read(from, &length, sizeof length) || length > (size_t)(from->end - from->at)) return NULL;
        from->at += length;
        return copied(type == 's' ? VALUE_BYTES : VALUE_TEXT, (const char *)from->at - length, length);
    case '(':
    case '[': return read_items(from, depth);
    default: return NULL;
    }
}

PyObject *values_read(const uint8_t *data, size_t length) {
    struct reader from = { data, data + length };
    PyObject *value = read_value(&from, MAX_DEPTH);
    if (value && from.at != from.end) {
        Py_DECREF(value);
        return NULL;
    }
    return value;
}
