// The operators of Qwen3 that are no matrix products, forwards and backwards.
//
// T is the type of what a product reads: float or bf16. The residual stream, its gradient, logits, scores and the
// gradients of weights are f32. Rows are contiguous. Every sum has a fixed order and no kernel uses atomics, so the same
// input gives the same bits.
//
// Heads of a batch are padded: `[sequences, query heads, longest, dim]`. Keys and values are there once for each query
// head, so that one strided product does all heads. `row_of[sequence * longest + position]` is the packed row of a
// padded one, or NONE; `place_of[row]` is the opposite.

#ifdef __CUDACC__
#include <cuda_bf16.h>
#define ENTRY(name)
#else
#include "lockstep.h"  // Tests run the kernels on the CPU.
#endif

typedef __nv_bfloat16 bf16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NONE 0xffffffffu
// A block has whole warps, at most 32 of them.
#define WARP 32
#define ALL 0xffffffffu
// For kernels whose blocks have 1,024 threads, the maximum.
#define LONG_ROW __launch_bounds__(1024)

__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ float number(bf16 x) { return __bfloat162float(x); }
template <typename T> __device__ __forceinline__ T operand(float x);
template <> __device__ __forceinline__ float operand<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 operand<bf16>(float x) { return __float2bfloat16(x); }

// N numbers that a thread reads or writes at once. The first one's place is a multiple of N.
template <typename T, int N> struct alignas(N * sizeof(T)) Pack {
  T at[N];
};
#define PACK 4

template <typename T, int N> __device__ __forceinline__ void read(const T *x, float (&out)[N]) {
  Pack<T, N> pack = *reinterpret_cast<const Pack<T, N> *>(x);
#pragma unroll
  for (int k = 0; k < N; k++) out[k] = number(pack.at[k]);
}

template <typename T, int N> __device__ __forceinline__ void write(T *y, const float (&in)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int k = 0; k < N; k++) pack.at[k] = operand<T>(in[k]);
  *reinterpret_cast<Pack<T, N> *>(y) = pack;
}

// Runs a kernel that is written for packs: with whole packs where rows of this width have them, else number by number.
#define BY_PACKS(width, kernel, ...) \
  do {                               \
    if ((width) % PACK == 0)         \
      kernel<T, PACK>(__VA_ARGS__);  \
    else                             \
      kernel<T, 1>(__VA_ARGS__);     \
  } while (0)

__device__ __forceinline__ float warp_sum(float x) {
  for (int step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
  return x;
}

__device__ __forceinline__ float warp_max(float x) {
  for (int step = WARP / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
  return x;
}

// The sum over a block, for every thread of it.
__device__ float block_sum(float x) {
  __shared__ float parts[WARP];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? parts[lane] : 0.0f);
}

// Two sums over a block, for every thread of it.
__device__ void block_sums(float &a, float &b) {
  __shared__ float parts[2][WARP];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  a = warp_sum(a);
  b = warp_sum(b);
  __syncthreads();
  if (lane == 0) parts[0][warp] = a, parts[1][warp] = b;
  __syncthreads();
  a = warp_sum(lane < warps ? parts[0][lane] : 0.0f);
  b = warp_sum(lane < warps ? parts[1][lane] : 0.0f);
}

__device__ float block_max(float x) {
  __shared__ float parts[WARP];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return warp_max(lane < warps ? parts[lane] : -INFINITY);
}

// ---- Norm: y = x / sqrt(mean(x^2) + eps) * w. A block takes a row.

template <typename T, int N>
__device__ void norm_row(const float *x, const float *w, T *y, int width, float eps) {
  float squares = 0.0f, xs[N], ws[N];
  for (int i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    read(x + i, xs);
#pragma unroll
    for (int k = 0; k < N; k++) squares += xs[k] * xs[k];
  }
  float inverse = rsqrtf(block_sum(squares) / width + eps);
  for (int i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    read(x + i, xs);
    read(w + i, ws);
#pragma unroll
    for (int k = 0; k < N; k++) xs[k] = xs[k] * inverse * ws[k];
    write(y + i, xs);
  }
}

template <typename T>
__device__ void rms_norm(const float *x, const float *w, T *y, int width, float eps) {
  u64 at = (u64)blockIdx.x * width;
  BY_PACKS(width, norm_row, x + at, w, y + at, width, eps);
}

template <typename T, int N>
__device__ void norm_row_backward(const float *x, const float *w, const T *g, float *dx, float *dw, int width,
                                  float eps) {
  float squares = 0.0f, products = 0.0f, xs[N], ws[N], gs[N], ds[N], dws[N];
  for (int i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    read(x + i, xs);
    read(w + i, ws);
    read(g + i, gs);
#pragma unroll
    for (int k = 0; k < N; k++) {
      squares += xs[k] * xs[k];
      products += xs[k] * gs[k] * ws[k];
    }
  }
  block_sums(squares, products);
  float inverse = rsqrtf(squares / width + eps);
  float pull = inverse * inverse * inverse * products / width;
  for (int i = threadIdx.x * N; i < width; i += blockDim.x * N) {
    read(x + i, xs);
    read(w + i, ws);
    read(g + i, gs);
    read(dx + i, ds);
    read(dw + i, dws);
#pragma unroll
    for (int k = 0; k < N; k++) {
      ds[k] += inverse * gs[k] * ws[k] - pull * xs[k];
      dws[k] += gs[k] * xs[k] * inverse;
    }
    write(dx + i, ds);
    write(dw + i, dws);
  }
}

// Adds the gradient of x to dx. dw_parts[blocks, width], zeros at first, gets each block's share of that of w.
template <typename T>
__device__ void rms_norm_backward(const float *x, const float *w, const T *g, float *dx, float *dw_parts, int rows,
                                  int width, float eps) {
  float *dw = dw_parts + (u64)blockIdx.x * width;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    u64 at = (u64)row * width;
    BY_PACKS(width, norm_row_backward, x + at, w, g + at, dx + at, dw, width, eps);
  }
}

// Adds to out[width] the rows of parts[rows, width] whose number modulo `period` is in from..from + count. `period` divides
// `rows`. Blocks are 32 columns by 32 rows.
extern "C" __global__ void column_sum(const float *parts, int rows, int width, int period, int from, int count,
                                      float *out) {
  __shared__ float sums[WARP][WARP];
  int column = blockIdx.x * WARP + threadIdx.x, wanted = rows / period * count;
  float sum = 0.0f;
  if (column < width)
    for (int i = threadIdx.y; i < wanted; i += WARP)
      sum += parts[(u64)(i / count * period + from + i % count) * width + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    for (int i = 1; i < WARP; i++) sum += sums[i][threadIdx.x];
    out[column] += sum;
  }
}

// ---- Heads: norm and rotary positions. A warp takes one head of one row; lanes take pairs (i, i + half).

#define PAIRS 4  // of a lane: heads have up to 256 dimensions

// The number p of a lane's indices: two that are side by side, and two that come 2 * WARP later.
__device__ __forceinline__ int of_lane(int p) { return p / 2 * 2 * WARP + threadIdx.x % WARP * 2 + p % 2; }

// A lane's numbers of half a head; 0 beyond its end.
template <typename T> __device__ __forceinline__ void read_half(const T *x, int half, float (&out)[PAIRS]) {
#pragma unroll
  for (int p = 0; p < PAIRS; p += 2) {
    int i = of_lane(p);
    float two[2] = {};
    if (half % 2 == 0) {
      if (i < half) read(x + i, two);
    } else {
      if (i < half) two[0] = number(x[i]);
      if (i + 1 < half) two[1] = number(x[i + 1]);
    }
    out[p] = two[0];
    out[p + 1] = two[1];
  }
}

template <typename T> __device__ __forceinline__ void write_half(T *y, int half, const float (&in)[PAIRS]) {
#pragma unroll
  for (int p = 0; p < PAIRS; p += 2) {
    int i = of_lane(p);
    float two[2] = {in[p], in[p + 1]};
    if (half % 2 == 0) {
      if (i < half) write(y + i, two);
    } else {
      if (i < half) y[i] = operand<T>(two[0]);
      if (i + 1 < half) y[i + 1] = operand<T>(two[1]);
    }
  }
}

// One head, normed with w and rotated.
template <typename T>
__device__ __forceinline__ void prepare(const T *x, const float *w, const float *cos, const float *sin, int half,
                                        float eps, float (&low)[PAIRS], float (&high)[PAIRS]) {
  float squares = 0.0f, w_low[PAIRS], w_high[PAIRS], c[PAIRS], s[PAIRS];
  read_half(x, half, low);
  read_half(x + half, half, high);
#pragma unroll
  for (int p = 0; p < PAIRS; p++) squares += low[p] * low[p] + high[p] * high[p];
  float inverse = rsqrtf(warp_sum(squares) / (2 * half) + eps);
  read_half(w, half, w_low);
  read_half(w + half, half, w_high);
  read_half(cos, half, c);
  read_half(sin, half, s);
#pragma unroll
  for (int p = 0; p < PAIRS; p++) {
    float a = low[p] * inverse * w_low[p], b = high[p] * inverse * w_high[p];
    low[p] = a * c[p] - b * s[p];
    high[p] = b * c[p] + a * s[p];
  }
}

template <typename T>
__device__ __forceinline__ void store(T *y, int half, const float (&low)[PAIRS], const float (&high)[PAIRS]) {
  write_half(y, half, low);
  write_half(y + half, half, high);
}

// From packed rows to padded q, k and v. Grid: padded rows, heads / warps.
template <typename T>
__device__ void split_heads(const T *packed, const u32 *row_of, const float *q_norm, const float *k_norm,
                            const float *cos, const float *sin, T *q, T *k, T *v, int query, int key_value, int half,
                            int longest, float eps) {
  int head = blockIdx.y * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (head >= query + 2 * key_value) return;
  int dim = 2 * half, group = query / key_value;
  u64 place = blockIdx.x;
  int sequence = place / longest, position = place % longest;
  u32 row = row_of[place];
  bool is_query = head < query, is_key = !is_query && head < query + key_value;
  // The first of the padded heads that this one is written to.
  int first = is_query ? head : (head - query - (is_key ? 0 : key_value)) * group;
  int copies = is_query ? 1 : group;
  T *out = is_query ? q : is_key ? k : v;
  u64 at = (((u64)sequence * query + first) * longest + position) * dim, next = (u64)longest * dim;
  float low[PAIRS] = {}, high[PAIRS] = {};
  const T *x = packed + (u64)row * (query + 2 * key_value) * dim + (u64)head * dim;
  if (row != NONE && (is_query || is_key)) {
    const float *c = cos + (u64)position * half, *s = sin + (u64)position * half;
    prepare(x, is_query ? q_norm : k_norm, c, s, half, eps, low, high);
  } else if (row != NONE) {
    read_half(x, half, low);
    read_half(x + half, half, high);
  }
  for (int i = 0; i < copies; i++) store(out + at + i * next, half, low, high);
}

// The way back: gradients of padded q, k and v to those of packed rows and of both norms.
// dw_parts[warps of the grid's x, query + key_value, dim] gets shares of the norms' gradients.
template <typename T>
__device__ void split_heads_backward(const T *packed, const u32 *place_of, const float *q_norm, const float *k_norm,
                                     const float *cos, const float *sin, const float *dq, const float *dk,
                                     const float *dv, T *d_packed, float *dw_parts, int rows, int query, int key_value,
                                     int half, int longest, float eps) {
  int warps = blockDim.x / WARP;
  int warp = blockIdx.x * warps + threadIdx.x / WARP, all = gridDim.x * warps;
  int head = blockIdx.y, dim = 2 * half, group = query / key_value;
  bool is_query = head < query, is_key = !is_query && head < query + key_value;
  int first = is_query ? head : (head - query - (is_key ? 0 : key_value)) * group;
  int copies = is_query ? 1 : group;
  const float *d = is_query ? dq : is_key ? dk : dv;
  const float *w = is_query ? q_norm : k_norm;
  u64 width = (u64)(query + 2 * key_value) * dim;
  float dw_low[PAIRS] = {}, dw_high[PAIRS] = {};
  for (int row = warp; row < rows; row += all) {
    u64 place = place_of[row];
    int sequence = place / longest, position = place % longest;
    u64 at = (((u64)sequence * query + first) * longest + position) * dim, next = (u64)longest * dim;
    T *out = d_packed + row * width + (u64)head * dim;
    float low[PAIRS] = {}, high[PAIRS] = {}, part_low[PAIRS], part_high[PAIRS];
    for (int c = 0; c < copies; c++) {
      read_half(d + at + c * next, half, part_low);
      read_half(d + at + c * next + half, half, part_high);
#pragma unroll
      for (int p = 0; p < PAIRS; p++) {
        low[p] += part_low[p];
        high[p] += part_high[p];
      }
    }
    if (!is_query && !is_key) {
      store(out, half, low, high);
      continue;
    }
    const T *x = packed + row * width + (u64)head * dim;
    float c[PAIRS], s[PAIRS], x_low[PAIRS], x_high[PAIRS], squares = 0.0f, products = 0.0f;
    float w_low[PAIRS], w_high[PAIRS];
    read_half(w, half, w_low);
    read_half(w + half, half, w_high);
    read_half(cos + (u64)position * half, half, c);
    read_half(sin + (u64)position * half, half, s);
    read_half(x, half, x_low);
    read_half(x + half, half, x_high);
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      float a = low[p], b = high[p];
      low[p] = a * c[p] + b * s[p];
      high[p] = b * c[p] - a * s[p];
      squares += x_low[p] * x_low[p] + x_high[p] * x_high[p];
      products += x_low[p] * low[p] * w_low[p] + x_high[p] * high[p] * w_high[p];
    }
    float inverse = rsqrtf(warp_sum(squares) / dim + eps);
    float pull = inverse * inverse * inverse * warp_sum(products) / dim;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      dw_low[p] += low[p] * x_low[p] * inverse;
      dw_high[p] += high[p] * x_high[p] * inverse;
      low[p] = inverse * low[p] * w_low[p] - pull * x_low[p];
      high[p] = inverse * high[p] * w_high[p] - pull * x_high[p];
    }
    store(out, half, low, high);
  }
  if (is_query || is_key) store(dw_parts + ((u64)warp * (query + key_value) + head) * dim, half, dw_low, dw_high);
}

// Padded heads [sequences, query, longest, dim] to packed rows [rows, query * dim]. A block takes a row.
template <typename T>
__device__ void join_heads(const T *heads, const u32 *place_of, T *rows, int query, int dim, int longest) {
  u64 place = place_of[blockIdx.x];
  u64 sequence = place / longest, position = place % longest;
  for (int i = threadIdx.x; i < query * dim; i += blockDim.x)
    rows[(u64)blockIdx.x * query * dim + i] = heads[((sequence * query + i / dim) * longest + position) * dim + i % dim];
}

// The opposite; padding is 0. A block takes a padded row.
template <typename T>
__device__ void join_heads_backward(const T *rows, const u32 *row_of, T *heads, int query, int dim, int longest) {
  u64 place = blockIdx.x;
  u64 sequence = place / longest, position = place % longest;
  u32 row = row_of[place];
  for (int i = threadIdx.x; i < query * dim; i += blockDim.x)
    heads[((sequence * query + i / dim) * longest + position) * dim + i % dim] =
        row == NONE ? operand<T>(0.0f) : rows[(u64)row * query * dim + i];
}

// ---- Causal softmax of a block of query rows: scores [batch, rows, keys], row r is at position first + r and sees the
// keys up to there. Grid: batch, rows.

// Reads a row's scores of the keys that it sees. Gives the largest, and the thread's share of the sums of exp(x - top) and,
// where dp is given, of exp(x - top) dp.
template <int N>
__device__ __forceinline__ float scan_row(const float *scores, const float *dp, int seen, float &sum, float &products) {
  float top = -INFINITY, xs[N], ps[N];
  for (int j = threadIdx.x * N; j < seen; j += blockDim.x * N) {
    read(scores + j, xs);
    if (dp) read(dp + j, ps);
    float higher = top;
#pragma unroll
    for (int k = 0; k < N; k++)
      if (j + k < seen) higher = fmaxf(higher, xs[k]);
    float keep = __expf(top - higher);
    sum *= keep;
    products *= keep;
    top = higher;
#pragma unroll
    for (int k = 0; k < N; k++) {
      if (j + k >= seen) continue;
      float e = __expf(xs[k] - top);
      sum += e;
      if (dp) products += e * ps[k];
    }
  }
  float highest = block_max(top), keep = __expf(top - highest);
  sum *= keep;
  products *= keep;
  return highest;
}

template <typename T, int N> __device__ void softmax_row(const float *scores, T *p, int keys, int seen) {
  float sum = 0.0f, none = 0.0f, xs[N];
  float top = scan_row<N>(scores, nullptr, seen, sum, none), inverse = 1.0f / block_sum(sum);
  for (int j = threadIdx.x * N; j < keys; j += blockDim.x * N) {
    read(scores + j, xs);
#pragma unroll
    for (int k = 0; k < N; k++) xs[k] = j + k < seen ? __expf(xs[k] - top) * inverse : 0.0f;
    write(p + j, xs);
  }
}

template <typename T>
__device__ void softmax(const float *scores, T *p, int rows, int keys, int first) {
  u64 at = ((u64)blockIdx.x * rows + blockIdx.y) * keys;
  int seen = min(first + (int)blockIdx.y + 1, keys);
  BY_PACKS(keys, softmax_row, scores + at, p + at, keys, seen);
}

template <typename T, int N>
__device__ void softmax_row_backward(const float *scores, const float *dp, T *p, T *ds, int keys, int seen) {
  float sum = 0.0f, products = 0.0f, xs[N], ps[N];
  float top = scan_row<N>(scores, dp, seen, sum, products);
  block_sums(sum, products);
  float inverse = 1.0f / sum, pull = products * inverse;
  for (int j = threadIdx.x * N; j < keys; j += blockDim.x * N) {
    read(scores + j, xs);
    read(dp + j, ps);
#pragma unroll
    for (int k = 0; k < N; k++) {
      bool sees = j + k < seen;
      xs[k] = sees ? __expf(xs[k] - top) * inverse : 0.0f;
      ps[k] = sees ? xs[k] * (ps[k] - pull) : 0.0f;
    }
    write(p + j, xs);
    write(ds + j, ps);
  }
}

// p again, and the gradient of the scores: p (dp - sum(p dp)).
template <typename T>
__device__ void softmax_backward(const float *scores, const float *dp, T *p, T *ds, int rows, int keys, int first) {
  u64 at = ((u64)blockIdx.x * rows + blockIdx.y) * keys;
  int seen = min(first + (int)blockIdx.y + 1, keys);
  BY_PACKS(keys, softmax_row_backward, scores + at, dp + at, p + at, ds + at, keys, seen);
}

// ---- Gated unit: silu(gate) * up, side by side in a row. Grid: rows, parts of a row.

template <typename T, int N> __device__ void swiglu_row(const T *x, T *y, int width) {
  float gates[N], ups[N];
  for (int i = (blockIdx.y * blockDim.x + threadIdx.x) * N; i < width; i += gridDim.y * blockDim.x * N) {
    read(x + i, gates);
    read(x + width + i, ups);
#pragma unroll
    for (int k = 0; k < N; k++) ups[k] *= gates[k] / (1.0f + __expf(-gates[k]));
    write(y + i, ups);
  }
}

template <typename T> __device__ void swiglu(const T *x, T *y, int width) {
  u64 at = (u64)blockIdx.x * width;
  BY_PACKS(width, swiglu_row, x + 2 * at, y + at, width);
}

template <typename T, int N> __device__ void swiglu_row_backward(const T *x, const T *dy, T *dx, T *y, int width) {
  float gates[N], ups[N], ds[N], ys[N];
  for (int i = (blockIdx.y * blockDim.x + threadIdx.x) * N; i < width; i += gridDim.y * blockDim.x * N) {
    read(x + i, gates);
    read(x + width + i, ups);
    read(dy + i, ds);
#pragma unroll
    for (int k = 0; k < N; k++) {
      float sigmoid = 1.0f / (1.0f + __expf(-gates[k])), silu = gates[k] * sigmoid;
      ys[k] = silu * ups[k];
      gates[k] = ds[k] * ups[k] * (sigmoid + silu * (1.0f - sigmoid));
      ups[k] = ds[k] * silu;
    }
    write(dx + i, gates);
    write(dx + width + i, ups);
    write(y + i, ys);
  }
}

// The gradient of x, and y again.
template <typename T> __device__ void swiglu_backward(const T *x, const T *dy, T *dx, T *y, int width) {
  u64 at = (u64)blockIdx.x * width;
  BY_PACKS(width, swiglu_row_backward, x + 2 * at, dy + at, dx + 2 * at, y + at, width);
}

// ---- Rows

template <typename T, int N> __device__ void convert(const float *x, T *y, u64 count) {
  float xs[N];
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * N; i < count; i += threads * N) {
    read(x + i, xs);
    write(y + i, xs);
  }
}

template <typename T> __device__ void to_operand(const float *x, T *y, u64 count) {
  BY_PACKS(count, convert, x, y, count);
}

template <typename T, int N> __device__ void add_numbers(T *sum, const T *part, u64 count) {
  float sums[N], parts[N];
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * N; i < count; i += threads * N) {
    read(sum + i, sums);
    read(part + i, parts);
#pragma unroll
    for (int k = 0; k < N; k++) sums[k] += parts[k];
    write(sum + i, sums);
  }
}

extern "C" __global__ void add(float *sum, const float *part, u64 count) {
  using T = float;
  BY_PACKS(count, add_numbers, sum, part, count);
}

// out[row] is column ids[row] of w[hidden, vocabulary]. A block takes a row.
template <typename T> __device__ void embed(const T *w, const u32 *ids, float *out, int hidden, int vocabulary) {
  u32 id = ids[blockIdx.x];
  for (int i = threadIdx.x; i < hidden; i += blockDim.x)
    out[(u64)blockIdx.x * hidden + i] = number(w[(u64)i * vocabulary + id]);
}

// Adds to column ids[n] of dw the rows rows[starts[n]..starts[n + 1]] of g. A block takes one id; ids are distinct.
extern "C" __global__ void embed_backward(const float *g, const u32 *ids, const u32 *starts, const u32 *rows, float *dw,
                                          int hidden, int vocabulary) {
  u32 id = ids[blockIdx.x];
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    float sum = 0.0f;
    for (u32 n = starts[blockIdx.x]; n < starts[blockIdx.x + 1]; n++) sum += g[(u64)rows[n] * hidden + i];
    dw[(u64)i * vocabulary + id] += sum;
  }
}

extern "C" __global__ void gather_rows(const float *x, const u32 *rows, float *out, int width) {
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[(u64)blockIdx.x * width + i] = x[(u64)rows[blockIdx.x] * width + i];
}

extern "C" __global__ void scatter_rows(const float *x, const u32 *rows, float *out, int width) {
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[(u64)rows[blockIdx.x] * width + i] = x[(u64)blockIdx.x * width + i];
}

// ---- Vocabulary head: ln p of the targets and entropies, from logits [rows, vocabulary]. A block takes a row.

// The largest scaled logit of a row, ln of the sum of exp(x - top), and the sum of p (x - top).
template <int N>
__device__ void distribution(const float *logits, int vocabulary, float scale, float &top, float &ln_sum, float &mean) {
  float largest = -INFINITY, sum = 0.0f, products = 0.0f, xs[N];
  for (int i = threadIdx.x * N; i < vocabulary; i += blockDim.x * N) {
    read(logits + i, xs);
    float higher = largest;
#pragma unroll
    for (int k = 0; k < N; k++) higher = fmaxf(higher, xs[k] *= scale);
    if (higher > largest) {
      float keep = __expf(largest - higher);
      if (sum > 0.0f) products = keep * (products + sum * (largest - higher));
      sum *= keep;
      largest = higher;
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
      float x = xs[k] - largest, e = __expf(x);
      sum += e;
      products += e * x;
    }
  }
  top = block_max(largest);
  float keep = __expf(largest - top);
  if (sum > 0.0f) products = keep * (products + sum * (largest - top));
  sum *= keep;
  block_sums(sum, products);
  ln_sum = logf(sum);
  mean = products / sum;
}

template <typename T, int N>
__device__ void log_probs_row(const float *logits, u32 target, T *log_prob, T *entropy, int vocabulary, float scale) {
  float top, ln_sum, mean;
  distribution<N>(logits, vocabulary, scale, top, ln_sum, mean);
  if (threadIdx.x == 0) {
    *log_prob = logits[target] * scale - top - ln_sum;
    *entropy = ln_sum - mean;
  }
}

extern "C" __global__ void LONG_ROW log_probs(const float *logits, const u32 *targets, float *log_prob,
                                              float *entropy, int vocabulary, float scale) {
  typedef float T;
  int row = blockIdx.x;
  BY_PACKS(vocabulary, log_probs_row, logits + (u64)row * vocabulary, targets[row], log_prob + row, entropy + row,
           vocabulary, scale);
}

// d = (g_logp (1[target] - p) - g_entropy p (ln p + H)) * scale
template <typename T, int N>
__device__ void log_probs_row_backward(const float *logits, u32 target, float g, float h, T *d, int vocabulary,
                                       float scale) {
  float top, ln_sum, mean, xs[N];
  distribution<N>(logits, vocabulary, scale, top, ln_sum, mean);
  float entropy = ln_sum - mean;
  for (int i = threadIdx.x * N; i < vocabulary; i += blockDim.x * N) {
    read(logits + i, xs);
#pragma unroll
    for (int k = 0; k < N; k++) {
      float ln_p = xs[k] * scale - top - ln_sum, p = __expf(ln_p);
      xs[k] = (i + k == target ? g : 0.0f) - g * p - h * p * (ln_p + entropy);
    }
    write(d + i, xs);
  }
}

template <typename T>
__device__ void log_probs_backward(const float *logits, const u32 *targets, const float *d_log_prob,
                                   const float *d_entropy, T *d, int vocabulary, float scale) {
  int row = blockIdx.x;
  u64 at = (u64)row * vocabulary;
  BY_PACKS(vocabulary, log_probs_row_backward, logits + at, targets[row], d_log_prob[row] * scale,
           d_entropy[row] * scale, d + at, vocabulary, scale);
}

// ---- Decoding

// Parts of a row whose probabilities are added first, at most.
#define PARTS 1024

// Draws one token of each row of logits [rows, vocabulary], and gives ln p of it. The token is the first at which the
// cumulated probability exceeds uniforms[row]; below 0, the first of the most probable. It is NONE if a logit is not a
// number. A block takes a row; a row has at most PARTS * PARTS logits.
extern "C" __global__ void LONG_ROW sample(const float *logits, const float *scales, const double *uniforms, u32 *ids,
                                           float *log_probs, int vocabulary) {
  __shared__ float parts[PARTS], weights[PARTS];
  __shared__ double groups[WARP], total, before;
  __shared__ int chosen;
  logits += (u64)blockIdx.x * vocabulary;
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  int length = (vocabulary + PARTS - 1) / PARTS, count = (vocabulary + length - 1) / length;
  float scale = scales[blockIdx.x], top = -INFINITY;
  double uniform = uniforms[blockIdx.x];
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) top = fmaxf(top, logits[i] * scale);
  top = block_max(top);
  for (int part = warp; part < count; part += warps) {
    int end = min((part + 1) * length, vocabulary);
    float sum = 0.0f;
    for (int i = part * length + lane; i < end; i += WARP) sum += __expf(logits[i] * scale - top);
    sum = warp_sum(sum);
    if (lane == 0) parts[part] = sum;
  }
  __syncthreads();
  // Groups of WARP parts are added first.
  if (threadIdx.x < WARP) {
    double sum = 0.0;
#pragma unroll 1
    for (int part = threadIdx.x * WARP; part < min((int)(threadIdx.x + 1) * WARP, count); part++) sum += parts[part];
    groups[threadIdx.x] = sum;
  }
  __syncthreads();
  // The part in which the cumulated sum exceeds the uniform number, and how much of it is left there.
  if (threadIdx.x == 0) {
    double sum = 0.0;
#pragma unroll 1
    for (int group = 0; group < WARP; group++) sum += groups[group];
    double left = uniform * sum;
    int first = 0;
#pragma unroll 1
    for (int group = 0; group < WARP; group++) {
      if (groups[group] == 0.0) continue;
      first = group * WARP;
      before = left;
      left -= groups[group];
      if (left < 0.0) break;
    }
    left = before;
    chosen = first;
#pragma unroll 1
    for (int part = first; part < min(first + WARP, count); part++) {
      if (parts[part] == 0.0f) continue;
      chosen = part;
      before = left;
      left -= parts[part];
      if (left < 0.0) break;
    }
    total = sum;
  }
  __syncthreads();
  int first = chosen * length, here = min(length, vocabulary - first);
  for (int i = threadIdx.x; i < here; i += blockDim.x) weights[i] = __expf(logits[first + i] * scale - top);
  int id = vocabulary;
  if (uniform < 0.0) {
    for (int i = threadIdx.x; i < vocabulary; i += blockDim.x)
      if (logits[i] * scale == top) id = min(id, i);
    id = -block_max(-(float)id);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (uniform >= 0.0) {
    double left = before;
#pragma unroll 1
    for (int i = 0; i < here; i++) {
      if (weights[i] == 0.0f) continue;
      id = first + i;
      left -= weights[i];
      if (left < 0.0) break;
    }
  }
  bool finite = total - total == 0.0;
  ids[blockIdx.x] = finite ? id : NONE;
  log_probs[blockIdx.x] = finite ? logits[id] * scale - top - logf(total) : 0.0f;
}

// Norms and rotates the heads of rows; queries go to q[rows, query, dim], keys and values into the cache at cells[row].
// Grid: rows, heads / warps.
template <typename T>
__device__ void cache_heads(const T *packed, const u32 *cells, const u32 *positions, const float *q_norm,
                            const float *k_norm, const float *cos, const float *sin, T *q, T *keys, T *values,
                            int query, int key_value, int half, float eps) {
  int head = blockIdx.y * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (head >= query + 2 * key_value) return;
  int dim = 2 * half;
  u64 row = blockIdx.x, cell = cells[row], position = positions[row];
  const T *x = packed + row * (query + 2 * key_value) * dim + (u64)head * dim;
  float low[PAIRS], high[PAIRS];
  if (head >= query + key_value) {
    read_half(x, half, low);
    read_half(x + half, half, high);
    store(values + (cell * key_value + head - query - key_value) * dim, half, low, high);
    return;
  }
  bool is_query = head < query;
  prepare(x, is_query ? q_norm : k_norm, cos + position * half, sin + position * half, half, eps, low, high);
  store(is_query ? q + (row * query + head) * dim : keys + (cell * key_value + head - query) * dim, half, low, high);
}

// The dimensions of a head that are a lane's, 0 beyond the last.
template <typename T, int PER> __device__ __forceinline__ void read_lane(const T *head, int dim, float (&out)[PER]) {
  int first = threadIdx.x % WARP * PER;
  if (dim % PER == 0 && first < dim) {
    read(head + first, out);
  } else {
#pragma unroll
    for (int i = 0; i < PER; i++) out[i] = first + i < dim ? number(head[first + i]) : 0.0f;
  }
}

// Positions that a warp of `attend` takes at once, so that it waits once for all of them.
#define AT_ONCE 4

// Positions of a page of the cache, as in decode/pages.rs: what the warps of a block take at once.
#define PAGE_TOKENS 32

// Attention of rows over the cache: row r sees the positions 0 ..= positions[r] of its sequence, whose pages are listed
// in tables from starts[r] on. A block takes one query head of one row: warp w takes positions w, w + warps and so on,
// each lane PER dimensions. Grid: rows, query heads.
template <typename T, int PER>
__device__ void attend(const T *q, const u32 *positions, const u32 *starts, const u32 *tables, const T *keys,
                       const T *values, T *out, int query, int key_value, int dim, float scale) {
  const int MOST = 8;  // warps
  __shared__ float tops[MOST], sums[MOST], parts[MOST][WARP * PER];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  u64 row = blockIdx.x;
  int head = blockIdx.y, kv_head = head / (query / key_value), seen = positions[row] + 1;
  const u32 *table = tables + starts[row];
  float query_part[PER], sum_v[PER] = {};
  read_lane(q + (row * query + head) * dim, dim, query_part);
  float top = -INFINITY, sum = 0.0f;
  for (int before = 0; before < seen; before += PAGE_TOKENS) {
    u64 first = (u64)table[before / PAGE_TOKENS] * PAGE_TOKENS;
    int count = min(PAGE_TOKENS, seen - before);
    for (int start = warp; start < count; start += AT_ONCE * warps) {
      float k[AT_ONCE][PER], v[AT_ONCE][PER], scores[AT_ONCE];
#pragma unroll
      for (int n = 0; n < AT_ONCE; n++) {
        int j = min(start + n * warps, count - 1);
        u64 at = ((first + j) * key_value + kv_head) * dim;
        read_lane(keys + at, dim, k[n]);
        read_lane(values + at, dim, v[n]);
      }
      float new_top = top;
#pragma unroll
      for (int n = 0; n < AT_ONCE; n++) {
        float score = 0.0f;
#pragma unroll
        for (int i = 0; i < PER; i++) score += query_part[i] * k[n][i];
        score = warp_sum(score) * scale;
        scores[n] = start + n * warps < count ? score : -INFINITY;
        new_top = fmaxf(new_top, scores[n]);
      }
      float keep = __expf(top - new_top);
      top = new_top;
      sum *= keep;
#pragma unroll
      for (int i = 0; i < PER; i++) sum_v[i] *= keep;
#pragma unroll
      for (int n = 0; n < AT_ONCE; n++) {
        float e = __expf(scores[n] - top);
        sum += e;
#pragma unroll
        for (int i = 0; i < PER; i++) sum_v[i] += e * v[n][i];
      }
    }
  }
  if (lane == 0) tops[warp] = top, sums[warp] = sum;
#pragma unroll
  for (int i = 0; i < PER; i++) parts[warp][lane * PER + i] = sum_v[i];
  __syncthreads();
  float highest = -INFINITY, total = 0.0f;
  for (int w = 0; w < warps; w++) highest = fmaxf(highest, tops[w]);
  for (int w = 0; w < warps; w++) total += sums[w] * __expf(tops[w] - highest);
  for (int c = threadIdx.x; c < dim; c += blockDim.x) {
    float value = 0.0f;
    for (int w = 0; w < warps; w++) value += parts[w][c] * __expf(tops[w] - highest);
    out[(row * query + head) * dim + c] = operand<T>(value / total);
  }
}

// ---- Optimiser

struct Step {
  float beta1, beta2, scale, keep, rate, correction2, epsilon;
};

template <typename T, int N>
__device__ void adamw_numbers(T *w, T *first, T *second, const T *g, u64 count, Step by) {
  float ws[N], ms[N], vs[N], gs[N];
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * N; i < count; i += threads * N) {
    read(w + i, ws);
    read(first + i, ms);
    read(second + i, vs);
    read(g + i, gs);
#pragma unroll
    for (int k = 0; k < N; k++) {
      float gk = gs[k] * by.scale;
      ms[k] = by.beta1 * ms[k] + (1.0f - by.beta1) * gk;
      vs[k] = by.beta2 * vs[k] + (1.0f - by.beta2) * gk * gk;
      ws[k] = ws[k] * by.keep - by.rate * ms[k] / (sqrtf(vs[k] * by.correction2) + by.epsilon);
    }
    write(first + i, ms);
    write(second + i, vs);
    write(w + i, ws);
  }
}

// Moves weights and their moments[2, count] by a gradient.
extern "C" __global__ void adamw(float *w, float *moments, const float *g, u64 count, float beta1, float beta2,
                                 float scale, float keep, float rate, float correction2, float epsilon) {
  using T = float;
  Step by = {beta1, beta2, scale, keep, rate, correction2, epsilon};
  BY_PACKS(count, adamw_numbers, w, moments, moments + count, g, count, by);
}

template <typename T, int N> __device__ void add_squares(const T *x, u64 count, float &sum) {
  float xs[N];
  u64 threads = (u64)gridDim.x * blockDim.x;
  for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * N; i < count; i += threads * N) {
    read(x + i, xs);
#pragma unroll
    for (int k = 0; k < N; k++) sum += xs[k] * xs[k];
  }
}

// sums[blocks] gets each block's share of the sum of squares.
extern "C" __global__ void sum_of_squares(const float *x, u64 count, float *sums) {
  using T = float;
  float sum = 0.0f;
  BY_PACKS(count, add_squares, x, count, sum);
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// ---- Entry points: those above, and NAME_f32 and NAME_bf16. ENTRY lists them for tests on the CPU.

ENTRY(column_sum)
ENTRY(add)
ENTRY(embed_backward)
ENTRY(gather_rows)
ENTRY(scatter_rows)
ENTRY(log_probs)
ENTRY(sample)
ENTRY(adamw)
ENTRY(sum_of_squares)

#define KERNELS(bounds, name, parameters, arguments)                                        \
  extern "C" __global__ void bounds name##_f32 parameters(float) { name<float> arguments; } \
  extern "C" __global__ void bounds name##_bf16 parameters(bf16) { name<bf16> arguments; }  \
  ENTRY(name##_f32)                                                                         \
  ENTRY(name##_bf16)
#define KERNEL(name, parameters, arguments) KERNELS(, name, parameters, arguments)

#define P(T) (const float *x, const float *w, T *y, int width, float eps)
KERNEL(rms_norm, P, (x, w, y, width, eps))
#undef P
#define P(T) \
  (const float *x, const float *w, const T *g, float *dx, float *dw_parts, int rows, int width, float eps)
KERNEL(rms_norm_backward, P, (x, w, g, dx, dw_parts, rows, width, eps))
#undef P
#define P(T)                                                                                                      \
  (const T *packed, const u32 *row_of, const float *q_norm, const float *k_norm, const float *cos,                \
   const float *sin, T *q, T *k, T *v, int query, int key_value, int half, int longest, float eps)
KERNEL(split_heads, P, (packed, row_of, q_norm, k_norm, cos, sin, q, k, v, query, key_value, half, longest, eps))
#undef P
#define P(T)                                                                                                        \
  (const T *packed, const u32 *place_of, const float *q_norm, const float *k_norm, const float *cos,                \
   const float *sin, const float *dq, const float *dk, const float *dv, T *d_packed, float *dw_parts, int rows,     \
   int query, int key_value, int half, int longest, float eps)
KERNEL(split_heads_backward, P,
       (packed, place_of, q_norm, k_norm, cos, sin, dq, dk, dv, d_packed, dw_parts, rows, query, key_value, half,
        longest, eps))
#undef P
#define P(T) (const T *heads, const u32 *place_of, T *rows, int query, int dim, int longest)
KERNEL(join_heads, P, (heads, place_of, rows, query, dim, longest))
#undef P
#define P(T) (const T *rows, const u32 *row_of, T *heads, int query, int dim, int longest)
KERNEL(join_heads_backward, P, (rows, row_of, heads, query, dim, longest))
#undef P
#define P(T) (const float *scores, T *p, int rows, int keys, int first)
KERNEL(softmax, P, (scores, p, rows, keys, first))
#undef P
#define P(T) (const float *scores, const float *dp, T *p, T *ds, int rows, int keys, int first)
KERNEL(softmax_backward, P, (scores, dp, p, ds, rows, keys, first))
#undef P
#define P(T) (const T *x, T *y, int width)
KERNEL(swiglu, P, (x, y, width))
#undef P
#define P(T) (const T *x, const T *dy, T *dx, T *y, int width)
KERNEL(swiglu_backward, P, (x, dy, dx, y, width))
#undef P
#define P(T) (const float *x, T *y, u64 count)
KERNEL(to_operand, P, (x, y, count))
#undef P
#define P(T) (const T *w, const u32 *ids, float *out, int hidden, int vocabulary)
KERNEL(embed, P, (w, ids, out, hidden, vocabulary))
#undef P
#define P(T)                                                                                             \
  (const float *logits, const u32 *targets, const float *d_log_prob, const float *d_entropy, T *d,       \
   int vocabulary, float scale)
KERNELS(LONG_ROW, log_probs_backward, P, (logits, targets, d_log_prob, d_entropy, d, vocabulary, scale))
#undef P
#define P(T)                                                                                                      \
  (const T *packed, const u32 *cells, const u32 *positions, const float *q_norm, const float *k_norm,             \
   const float *cos, const float *sin, T *q, T *keys, T *values, int query, int key_value, int half, float eps)
KERNEL(cache_heads, P,
       (packed, cells, positions, q_norm, k_norm, cos, sin, q, keys, values, query, key_value, half, eps))
#undef P

#define ATTEND(per, type, T)                                                                                       \
  extern "C" __global__ void attend_##per##_##type(const T *q, const u32 *positions, const u32 *starts,            \
                                                   const u32 *tables, const T *keys, const T *values, T *out,      \
                                                   int query, int key_value, int dim, float scale) {               \
    attend<T, per>(q, positions, starts, tables, keys, values, out, query, key_value, dim, scale);                 \
  }                                                                                                                \
  ENTRY(attend_##per##_##type)
#define ATTENDS(per) ATTEND(per, f32, float) ATTEND(per, bf16, bf16)
ATTENDS(1)
ATTENDS(2)
ATTENDS(4)
ATTENDS(8)
