// What the module asks of the host: the interfaces `process`, `data` and `gates` of wit, and nothing else.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "interpreter_plugin.h"

static inline uint64_t host_wall_now(void) { return rlf_plugin_process_wall_now(); }
static inline uint64_t host_monotonic_now(void) { return rlf_plugin_process_monotonic_now(); }
static inline uint64_t host_random(void) { return rlf_plugin_process_random(); }
static inline void host_sleep(uint64_t ns) { rlf_plugin_process_sleep(ns); }
static inline void host_exit(int32_t code) { rlf_plugin_process_exit(code); }

static inline void host_random_bytes(uint8_t *bytes, size_t length) {
    while (length) {
        uint64_t word = host_random();
        size_t n = length < sizeof word ? length : sizeof word;
        memcpy(bytes, &word, n);
        bytes += n;
        length -= n;
    }
}

static inline void host_write(uint8_t fd, const uint8_t *data, size_t length) {
    interpreter_plugin_list_u8_t list = { (uint8_t *)data, length };
    rlf_plugin_process_write(fd, &list);
}

typedef rlf_plugin_data_list_entry_t host_entries_t;
typedef rlf_plugin_data_error_t host_error_t;

static inline bool host_entries(const char *slot, size_t length, host_entries_t *entries, host_error_t *error) {
    interpreter_plugin_string_t name = { (uint8_t *)slot, length };
    return rlf_plugin_data_entries(&name, entries, error);
}

static inline bool host_read(const char *slot, size_t slot_length, const char *path, size_t path_length, uint64_t offset,
                             uint32_t length, interpreter_plugin_list_u8_t *data, host_error_t *error) {
    interpreter_plugin_string_t name = { (uint8_t *)slot, slot_length }, file = { (uint8_t *)path, path_length };
    return rlf_plugin_data_read(&name, &file, offset, length, data, error);
}

static inline void host_ask(const char *kind, size_t kind_length, const char *requests, size_t length,
                            interpreter_plugin_string_t *answers) {
    interpreter_plugin_string_t name = { (uint8_t *)kind, kind_length }, text = { (uint8_t *)requests, length };
    rlf_plugin_gates_ask(&name, &text, answers);
}
