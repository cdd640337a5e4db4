#pragma once
#include <Python.h>

// The driver's functions, as plugins/python/README.md describes them.
struct driver {
    PyObject *configure, *languages, *compile, *execute;
    PyObject *open, *session_execute, *session_fetch;
};

extern struct driver driver;

// Before a run: see there.
void join_written_pages(void);

// After the driver was configured, and before the memory is kept a second time.
void keep_configured(bool waiting);
