// memcpy, memmove and memset in place of the C library's: short ones eight bytes at a time, which WebAssembly loads and
// stores at any address, and long ones as the one instruction there is for them, which costs a call out of the module.
#include <stddef.h>
#include <stdint.h>

enum { LONG = 192 };

static inline uint64_t load(const char *from) {
    uint64_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

static inline void store(char *to, uint64_t word) { __builtin_memcpy(to, &word, sizeof word); }

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    if (n >= LONG) return __builtin_memcpy(to, from, n);
    char *t = to;
    const char *f = from;
    if (n >= 8) {
        // The last word overlaps the one before it.
        uint64_t last = load(f + n - 8);
        char *end = t + n - 8;
        for (; t < end; t += 8, f += 8) store(t, load(f));
        store(end, last);
        return to;
    }
    while (n--) *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    if (n >= LONG) return __builtin_memmove(to, from, n);
    char *t = to;
    const char *f = from;
    if (t <= f || t >= f + n) {
        for (; n >= 8; n -= 8, t += 8, f += 8) store(t, load(f));
        while (n--) *t++ = *f++;
    } else {
        while (n >= 8) {
            n -= 8;
            store(t + n, load(f + n));
        }
        while (n--) t[n] = f[n];
    }
    return to;
}

void *memset(void *to, int value, size_t n) {
    if (n >= LONG) return __builtin_memset(to, value, n);
    char *t = to;
    if (n >= 8) {
        uint64_t word = (uint8_t)value * 0x0101010101010101u;
        char *end = t + n - 8;
        for (; t < end; t += 8) store(t, word);
        store(end, word);
        return to;
    }
    while (n--) *t++ = (char)value;
    return to;
}
