#pragma once
#include <stdbool.h>

bool wasi_has_open_files(void);
