// CUDA on the CPU: with this header a C++ compiler builds kernels.cu, and tests run the kernels' own source.
//
// A block's threads are fibers of one OS thread, and blocks run one after another. A fiber runs until it waits at a
// barrier or a shuffle, or ends. A warp runs until all its threads wait at a barrier or have ended; then the next warp
// runs. So a warp gets as far ahead of the others as barriers allow. Callers choose the order of warps and lanes. If a
// barrier is missing, results differ between orders, or are NaN: all shared memory is NaN when a block begins.
#pragma once

#include <link.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <utility>

namespace lockstep {

const unsigned LANES = 32, MOST_THREADS = 1024;
// Bytes of a fiber's stack.
const size_t STACK = 1 << 16;

struct Index {
  unsigned x, y, z;
};

enum class State { Ready, AtBarrier, AtShuffle, Ended };

struct Thread {
  Index index;
  State state;
  int line;           // of kernels.cu, where it waits
  unsigned shuffles;  // so far
  float given[2];     // to the last two shuffles
  void *place[5];     // for __builtin_setjmp
};

// A kernel's name, and how to call it with an array of pointers to its arguments.
struct Entry {
  const char *name;
  void (*kernel)();
  void (*call)(void (*kernel)(), void **arguments);
  Entry *next;

  template <typename... A> Entry(const char *name, void (*kernel)(A...));
};

static Entry *entries;

struct Launch {
  Index grid, size, block;
  unsigned order, count;
  uint64_t random;
  const Entry *entry;
  void **arguments;
  Thread *now;  // the thread that runs
  void *scheduler[5];
  Thread threads[MOST_THREADS];
};

// The running launch. Besides it, only shared memory is thread_local.
static thread_local Launch *running;

template <typename... A, size_t... I>
void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<A *>(arguments[I])...);
}

template <typename... A>
Entry::Entry(const char *name, void (*kernel)(A...))
    : name(name), kernel(reinterpret_cast<void (*)()>(kernel)), next(entries) {
  call = [](void (*kernel)(), void **arguments) {
    lockstep::call(reinterpret_cast<void (*)(A...)>(kernel), arguments, std::index_sequence_for<A...>());
  };
  entries = this;
}

[[noreturn]] inline void fail(const char *what, int line, int other) {
  fprintf(stderr, "lockstep: %s, block (%u, %u): %s: lines %d and %d (0: the thread has ended)\n", running->entry->name,
          running->block.x, running->block.y, what, line, other);
  abort();
}

// Apart from __builtin_setjmp: with both in one function, what GCC builds crashes.
[[noreturn]] __attribute__((noinline)) inline void jump(void **place) { __builtin_longjmp(place, 1); }

// Leaves a fiber until the scheduler lets it go on. swapcontext would do the same, with system calls.
__attribute__((noinline)) inline void wait(State state, int line) {
  Thread *me = running->now;
  me->state = state;
  me->line = line;
  if (__builtin_setjmp(me->place) == 0) jump(running->scheduler);
}

__attribute__((noinline)) inline void resume(Thread &thread) {
  running->now = &thread;
  if (__builtin_setjmp(running->scheduler) == 0) jump(thread.place);
}

// A fiber: runs the kernel once for each block.
inline void fiber() {
  for (;;) {
    wait(State::Ended, 0);
    running->entry->call(running->entry->kernel, running->arguments);
  }
}

// Starts a fiber, which waits for its first block.
__attribute__((noinline)) inline void start(Thread &thread, char *stack) {
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = STACK;
  context.uc_link = nullptr;
  makecontext(&context, fiber, 0);
  running->now = &thread;
  if (__builtin_setjmp(running->scheduler) == 0) setcontext(&context);
}

// Takes the numbers below `count`, at most 32, in the launch's order.
template <typename F> void in_order(unsigned count, F each) {
  unsigned numbers[LANES];
  for (unsigned i = 0; i < count; i++) {
    unsigned place = i;
    if (running->order > 1) {
      running->random = running->random * 6364136223846793005u + 1442695040888963407u;
      place = (running->random >> 33) % (i + 1);
      numbers[i] = numbers[place];
    }
    numbers[place] = running->order == 1 ? count - 1 - i : i;
  }
  for (unsigned i = 0; i < count; i++) each(numbers[i]);
}

// Lets threads go on if one of them waits like this. Then all of them must, at the same line.
inline bool release(Thread *threads, unsigned count, State state, const char *what) {
  Thread *first = threads, *end = threads + count;
  while (first != end && first->state != state) first++;
  if (first == end) return false;
  for (Thread *thread = threads; thread != end; thread++)
    if (thread->state != state || thread->line != first->line) fail(what, first->line, thread->line);
  for (Thread *thread = threads; thread != end; thread++) thread->state = State::Ready;
  return true;
}

inline void run_warp(unsigned warp) {
  Thread *lanes = running->threads + warp * LANES;
  auto run = [&](unsigned lane) {
    if (lanes[lane].state == State::Ready) resume(lanes[lane]);
  };
  do in_order(LANES, run);
  while (release(lanes, LANES, State::AtShuffle, "lanes of a warp part at a shuffle"));
}

inline void run_block(char *shared, size_t bytes) {
  Launch *kept = running;
  memset(shared, 0xff, bytes);
  running = kept;
  for (unsigned i = 0; i < running->count; i++) running->threads[i].state = State::Ready;
  do in_order(running->count / LANES, run_warp);
  while (release(running->threads, running->count, State::AtBarrier, "threads of a block part at a barrier"));
}

// Finds this OS thread's copy of the library's thread_local variables.
inline int find_shared(dl_phdr_info *info, size_t, void *found) {
  char *start = static_cast<char *>(info->dlpi_tls_data), *here = reinterpret_cast<char *>(&running);
  for (int i = 0; i < info->dlpi_phnum; i++) {
    size_t bytes = info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type != PT_TLS || !start || here < start || here >= start + bytes) continue;
    *static_cast<std::pair<char *, size_t> *>(found) = {start, bytes};
    return 1;
  }
  return 0;
}

inline float shuffle(unsigned mask, float value, unsigned step, int line) {
  if (mask != 0xffffffffu || step >= LANES) fail("a shuffle of a part of a warp", line, line);
  Thread *me = running->now;
  // A lane can be one shuffle ahead of the others, so two numbers are kept.
  unsigned turn = me->shuffles++ % 2;
  me->given[turn] = value;
  wait(State::AtShuffle, line);
  return running->threads[(me - running->threads) ^ step].given[turn];
}

}  // namespace lockstep

// Runs a kernel, with the arguments of cuLaunchKernel. Order: 0 forwards, 1 backwards, more: the seed of a random one.
// Returns 1 if there is no such kernel and 2 if a block is not 1 to 32 whole warps. Aborts if a kernel goes wrong.
extern "C" int launch(const char *name, void **arguments, unsigned grid_x, unsigned grid_y, unsigned block_x,
                      unsigned block_y, unsigned order) {
  using namespace lockstep;
  const Entry *entry = entries;
  while (entry && strcmp(entry->name, name) != 0) entry = entry->next;
  if (!entry) return 1;
  unsigned count = block_x * block_y, blocks = grid_x * grid_y;
  if (count == 0 || count > MOST_THREADS || count % LANES != 0) return 2;
  char *stacks = static_cast<char *>(malloc(count * STACK));
  running = new Launch();
  running->grid = {grid_x, grid_y, 1};
  running->size = {block_x, block_y, 1};
  running->order = order;
  running->random = order;
  running->count = count;
  running->entry = entry;
  running->arguments = arguments;
  for (unsigned i = 0; i < count; i++) {
    running->threads[i].index = {i % block_x, i / block_x, 0};
    start(running->threads[i], stacks + i * STACK);
  }
  std::pair<char *, size_t> shared;
  if (!stacks || dl_iterate_phdr(find_shared, &shared) == 0) abort();
  for (unsigned i = 0; i < blocks; i++) {
    unsigned number = order == 1 ? blocks - 1 - i : i;
    running->block = {number % grid_x, number / grid_x, 0};
    run_block(shared.first, shared.second);
  }
  delete running;
  free(stacks);
  return 0;
}

// ---- What kernels.cu uses

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ static thread_local
#define gridDim (lockstep::running->grid)
#define blockDim (lockstep::running->size)
#define blockIdx (lockstep::running->block)
#define threadIdx (lockstep::running->now->index)
#define __syncthreads() lockstep::wait(lockstep::State::AtBarrier, __LINE__)
#define __shfl_xor_sync(mask, value, step) lockstep::shuffle(mask, value, step, __LINE__)
#define ENTRY(name) static lockstep::Entry entry_##name(#name, name);

struct __nv_bfloat16 {
  uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 x) {
  uint32_t bits = uint32_t(x.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}

// Rounds to the nearest; of two, to the even one.
inline __nv_bfloat16 __float2bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  if (x != x) return {0x7fff};
  return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline int min(int a, int b) { return a < b ? a : b; }
