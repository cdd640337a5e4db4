/* Read before each of the engine's C files (`-include`).
 *
 * The engine counts its stack and throws a RangeError where it ends, except where it sees __wasi__: there it counts
 * nothing, and endless recursion would end the instance instead of the program. So the headers that need the name are
 * read first, and then it goes away. EMSCRIPTEN is what the engine is told that it is compiled for; other C code is not.
 */
#ifdef EMSCRIPTEN

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#undef __wasi__
#endif
