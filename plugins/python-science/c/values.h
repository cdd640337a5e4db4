// Values as bytes, in the form of CPython's module `marshal`, version 2.
#pragma once
#include "Python.h"

struct bytes {
    size_t length, room;
    uint8_t *data;
};

// Appends a value.
void values_write(struct bytes *to, const PyObject *value);
void values_write_byte(struct bytes *to, uint8_t byte);
void values_write_word(struct bytes *to, uint32_t word);

// Reads one value, which has to be all that is there. NULL if it is anything else.
PyObject *values_read(const uint8_t *data, size_t length);
