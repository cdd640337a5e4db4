// What the module asks of the host: the interface `process` of wit/code.wit, and nothing else.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "interpreter_plugin.h"

static inline uint64_t host_wall_now(void) { return rlf_plugin_process_wall_now(); }
static inline uint64_t host_monotonic_now(void) { return rlf_plugin_process_monotonic_now(); }
static inline uint64_t host_random(void) { return rlf_plugin_process_random(); }
static inline void host_sleep(uint64_t ns) { rlf_plugin_process_sleep(ns); }
static inline void host_exit(int32_t code) { rlf_plugin_process_exit(code); }

static inline void host_write(uint8_t fd, const uint8_t *data, size_t length) {
    interpreter_plugin_list_u8_t list = { (uint8_t *)data, length };
    rlf_plugin_process_write(fd, &list);
}
