"""The variables of `sysconfig` for this build, without the folders of the machine that made it. Nothing can be compiled here."""

build_time_vars = {
    "ABIFLAGS": "",
    "ARCH": "wasm32",
    "EXE": ".wasm",
    "EXT_SUFFIX": ".cpython-313-wasm32-wasi.so",
    "HOST_GNU_TYPE": "wasm32-unknown-wasip1",
    "LIBDEST": "/usr/lib/python3.13",
    "LIBDIR": "/usr/lib",
    "MACHDEP": "wasi",
    "MULTIARCH": "wasm32-wasi",
    "Py_DEBUG": 0,
    "Py_ENABLE_SHARED": 0,
    "Py_GIL_DISABLED": 0,
    "SIZEOF_VOID_P": 4,
    "SOABI": "cpython-313-wasm32-wasi",
    "VERSION": "3.13",
    "WITH_PYMALLOC": 1,
    "prefix": "/usr",
    "exec_prefix": "/usr",
}
