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

__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ float number(bf16 x) { return __bfloat162float(x); }
template <typename T> __device__ __forceinline__ T operand(float x);
template <> __device__ __forceinline__ float operand<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 operand<bf16>(float x) { return __float2bfloat16(x); }

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

template <typename T>
__device__ void rms_norm(const float *x, const float *w, T *y, int width, float eps) {
  x += (u64)blockIdx.x * width;
  y += (u64)blockIdx.x * width;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += x[i] * x[i];
  float inverse = rsqrtf(block_sum(squares) / width + eps);
  for (int i = threadIdx.x; i < width; i += blockDim.x) y[i] = operand<T>(x[i] * inverse * w[i]);
}

// Adds the gradient of x to dx. dw_parts[blocks, width], zeros at first, gets each block's share of that of w.
template <typename T>
__device__ void rms_norm_backward(const float *x, const float *w, const T *g, float *dx, float *dw_parts, int rows,
                                  int width, float eps) {
  float *dw = dw_parts + (u64)blockIdx.x * width;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const float *xr = x + (u64)row * width;
    const T *gr = g + (u64)row * width;
    float *dr = dx + (u64)row * width;
    float squares = 0.0f, products = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
      squares += xr[i] * xr[i];
      products += xr[i] * number(gr[i]) * w[i];
    }
    float inverse = rsqrtf(block_sum(squares) / width + eps);
    float pull = inverse * inverse * inverse * block_sum(products) / width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
      float gi = number(gr[i]);
      dr[i] += inverse * gi * w[i] - pull * xr[i];
      dw[i] += gi * xr[i] * inverse;
    }
  }
}

// Adds to out[width] the rows of parts[rows, width] whose number modulo `period` is in from..from + count.
// Blocks are 32 columns by 8 rows.
extern "C" __global__ void column_sum(const float *parts, int rows, int width, int period, int from, int count,
                                      float *out) {
  __shared__ float sums[8][WARP];
  int column = blockIdx.x * WARP + threadIdx.x;
  float sum = 0.0f;
  if (column < width)
    for (int row = threadIdx.y; row < rows; row += 8) {
      int kind = row % period;
      if (kind >= from && kind < from + count) sum += parts[(u64)row * width + column];
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    for (int i = 1; i < 8; i++) sum += sums[i][threadIdx.x];
    out[column] += sum;
  }
}

// ---- Heads: norm and rotary positions. A warp takes one head of one row; lanes take pairs (i, i + half).

#define PAIRS 4  // of a lane: heads have up to 256 dimensions

// One head, normed with w and rotated.
template <typename T>
__device__ __forceinline__ void prepare(const T *x, const float *w, const float *cos, const float *sin, int half,
                                        float eps, float (&low)[PAIRS], float (&high)[PAIRS]) {
  int lane = threadIdx.x % WARP;
  float squares = 0.0f;
#pragma unroll
  for (int p = 0; p < PAIRS; p++) {
    int i = lane + p * WARP;
    low[p] = i < half ? number(x[i]) : 0.0f;
    high[p] = i < half ? number(x[i + half]) : 0.0f;
    squares += low[p] * low[p] + high[p] * high[p];
  }
  float inverse = rsqrtf(warp_sum(squares) / (2 * half) + eps);
#pragma unroll
  for (int p = 0; p < PAIRS; p++) {
    int i = lane + p * WARP;
    if (i >= half) continue;
    float a = low[p] * inverse * w[i], b = high[p] * inverse * w[i + half];
    low[p] = a * cos[i] - b * sin[i];
    high[p] = b * cos[i] + a * sin[i];
  }
}

template <typename T> __device__ __forceinline__ void store(T *y, int half, float (&low)[PAIRS], float (&high)[PAIRS]) {
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int p = 0; p < PAIRS; p++) {
    int i = lane + p * WARP;
    if (i >= half) continue;
    y[i] = operand<T>(low[p]);
    y[i + half] = operand<T>(high[p]);
  }
}

template <typename T> __device__ __forceinline__ void copy(const T *x, T *y, int dim) {
  for (int i = threadIdx.x % WARP; i < dim; i += WARP) y[i] = x[i];
}

template <typename T> __device__ __forceinline__ void zero(T *y, int dim) {
  for (int i = threadIdx.x % WARP; i < dim; i += WARP) y[i] = operand<T>(0.0f);
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
  if (row == NONE) {
    for (int i = 0; i < copies; i++) zero(out + at + i * next, dim);
    return;
  }
  const T *x = packed + (u64)row * (query + 2 * key_value) * dim + (u64)head * dim;
  if (!is_query && !is_key) {
    for (int i = 0; i < copies; i++) copy(x, out + at + i * next, dim);
    return;
  }
  float low[PAIRS], high[PAIRS];
  prepare(x, is_query ? q_norm : k_norm, cos + (u64)position * half, sin + (u64)position * half, half, eps, low, high);
  for (int i = 0; i < copies; i++) store(out + at + i * next, half, low, high);
}

// The way back: gradients of padded q, k and v to those of packed rows and of both norms.
// dw_parts[warps of the grid's x, query + key_value, dim] gets shares of the norms' gradients.
template <typename T>
__device__ void split_heads_backward(const T *packed, const u32 *place_of, const float *q_norm, const float *k_norm,
                                     const float *cos, const float *sin, const float *dq, const float *dk,
                                     const float *dv, T *d_packed, float *dw_parts, int rows, int query, int key_value,
                                     int half, int longest, float eps) {
  int lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
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
    float low[PAIRS] = {}, high[PAIRS] = {};
    for (int c = 0; c < copies; c++)
#pragma unroll
      for (int p = 0; p < PAIRS; p++) {
        int i = lane + p * WARP;
        if (i >= half) continue;
        low[p] += d[at + c * next + i];
        high[p] += d[at + c * next + i + half];
      }
    if (!is_query && !is_key) {
      store(out, half, low, high);
      continue;
    }
    const T *x = packed + row * width + (u64)head * dim;
    const float *c = cos + (u64)position * half, *s = sin + (u64)position * half;
    float x_low[PAIRS], x_high[PAIRS], squares = 0.0f, products = 0.0f;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      int i = lane + p * WARP;
      x_low[p] = x_high[p] = 0.0f;
      if (i >= half) continue;
      float a = low[p], b = high[p];
      low[p] = a * c[i] + b * s[i];
      high[p] = b * c[i] - a * s[i];
      x_low[p] = number(x[i]);
      x_high[p] = number(x[i + half]);
      squares += x_low[p] * x_low[p] + x_high[p] * x_high[p];
      products += x_low[p] * low[p] * w[i] + x_high[p] * high[p] * w[i + half];
    }
    float inverse = rsqrtf(warp_sum(squares) / dim + eps);
    float pull = inverse * inverse * inverse * warp_sum(products) / dim;
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      int i = lane + p * WARP;
      if (i >= half) continue;
      dw_low[p] += low[p] * x_low[p] * inverse;
      dw_high[p] += high[p] * x_high[p] * inverse;
      low[p] = inverse * low[p] * w[i] - pull * x_low[p];
      high[p] = inverse * high[p] * w[i + half] - pull * x_high[p];
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

template <typename T>
__device__ void softmax(const float *scores, T *p, int rows, int keys, int first) {
  u64 at = ((u64)blockIdx.x * rows + blockIdx.y) * keys;
  int seen = min(first + (int)blockIdx.y + 1, keys);
  float top = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < seen; j += blockDim.x) top = fmaxf(top, scores[at + j]);
  top = block_max(top);
  for (int j = threadIdx.x; j < seen; j += blockDim.x) sum += __expf(scores[at + j] - top);
  float inverse = 1.0f / block_sum(sum);
  for (int j = threadIdx.x; j < keys; j += blockDim.x)
    p[at + j] = operand<T>(j < seen ? __expf(scores[at + j] - top) * inverse : 0.0f);
}

// p again, and the gradient of the scores: p (dp - sum(p dp)).
template <typename T>
__device__ void softmax_backward(const float *scores, const float *dp, T *p, T *ds, int rows, int keys, int first) {
  u64 at = ((u64)blockIdx.x * rows + blockIdx.y) * keys;
  int seen = min(first + (int)blockIdx.y + 1, keys);
  float top = -INFINITY, sum = 0.0f, products = 0.0f;
  for (int j = threadIdx.x; j < seen; j += blockDim.x) top = fmaxf(top, scores[at + j]);
  top = block_max(top);
  for (int j = threadIdx.x; j < seen; j += blockDim.x) {
    float e = __expf(scores[at + j] - top);
    sum += e;
    products += e * dp[at + j];
  }
  float inverse = 1.0f / block_sum(sum);
  float pull = block_sum(products) * inverse;
  for (int j = threadIdx.x; j < keys; j += blockDim.x) {
    float value = j < seen ? __expf(scores[at + j] - top) * inverse : 0.0f;
    p[at + j] = operand<T>(value);
    ds[at + j] = operand<T>(j < seen ? value * (dp[at + j] - pull) : 0.0f);
  }
}

// ---- Gated unit: silu(gate) * up, side by side in a row. A thread takes one result.

template <typename T> __device__ void swiglu(const T *x, T *y, u64 count, int width) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  u64 at = i / width * 2 * width + i % width;
  float g = number(x[at]), u = number(x[at + width]);
  y[i] = operand<T>(g / (1.0f + __expf(-g)) * u);
}

// The gradient of x, and y again.
template <typename T>
__device__ void swiglu_backward(const T *x, const T *dy, T *dx, T *y, u64 count, int width) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  u64 at = i / width * 2 * width + i % width;
  float g = number(x[at]), u = number(x[at + width]), d = number(dy[i]);
  float sigmoid = 1.0f / (1.0f + __expf(-g)), silu = g * sigmoid;
  dx[at] = operand<T>(d * u * (sigmoid + silu * (1.0f - sigmoid)));
  dx[at + width] = operand<T>(d * silu);
  y[i] = operand<T>(silu * u);
}

// ---- Rows

template <typename T> __device__ void to_operand(const float *x, T *y, u64 count) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = operand<T>(x[i]);
}

extern "C" __global__ void add(float *sum, const float *part, u64 count) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] += part[i];
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
__device__ void distribution(const float *logits, int vocabulary, float scale, float &top, float &ln_sum, float &mean) {
  float largest = -INFINITY, sum = 0.0f, products = 0.0f;
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) largest = fmaxf(largest, logits[i] * scale);
  top = block_max(largest);
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    float x = logits[i] * scale - top, e = __expf(x);
    sum += e;
    products += e * x;
  }
  sum = block_sum(sum);
  ln_sum = logf(sum);
  mean = block_sum(products) / sum;
}

extern "C" __global__ void log_probs(const float *logits, const u32 *targets, float *log_prob, float *entropy,
                                     int vocabulary, float scale) {
  logits += (u64)blockIdx.x * vocabulary;
  float top, ln_sum, mean;
  distribution(logits, vocabulary, scale, top, ln_sum, mean);
  if (threadIdx.x == 0) {
    log_prob[blockIdx.x] = logits[targets[blockIdx.x]] * scale - top - ln_sum;
    entropy[blockIdx.x] = ln_sum - mean;
  }
}

// d = (g_logp (1[target] - p) - g_entropy p (ln p + H)) * scale
template <typename T>
__device__ void log_probs_backward(const float *logits, const u32 *targets, const float *d_log_prob,
                                   const float *d_entropy, T *d, int vocabulary, float scale) {
  logits += (u64)blockIdx.x * vocabulary;
  d += (u64)blockIdx.x * vocabulary;
  float top, ln_sum, mean;
  distribution(logits, vocabulary, scale, top, ln_sum, mean);
  float g = d_log_prob[blockIdx.x] * scale, h = d_entropy[blockIdx.x] * scale, entropy = ln_sum - mean;
  u32 target = targets[blockIdx.x];
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    float ln_p = logits[i] * scale - top - ln_sum, p = __expf(ln_p);
    d[i] = operand<T>((i == target ? g : 0.0f) - g * p - h * p * (ln_p + entropy));
  }
}

// ---- Decoding

// Parts of a row whose probabilities are added first, at most.
#define PARTS 1024

// Draws one token of each row of logits [rows, vocabulary], and gives ln p of it. The token is the first at which the
// cumulated probability exceeds uniforms[row]; below 0, the first of the most probable. It is NONE if a logit is not a
// number. A block takes a row; a row has at most PARTS * PARTS logits.
extern "C" __global__ void sample(const float *logits, const float *scales, const double *uniforms, u32 *ids,
                                  float *log_probs, int vocabulary) {
  __shared__ float parts[PARTS], weights[PARTS];
  __shared__ double total, before;
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
  // The part in which the cumulated sum exceeds the uniform number, and how much of it is left there.
  if (threadIdx.x == 0) {
    double sum = 0.0;
    for (int part = 0; part < count; part++) sum += parts[part];
    double left = uniform * sum;
    chosen = 0;
    for (int part = 0; part < count; part++) {
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
  int highest = vocabulary;
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x)
    if (logits[i] * scale == top) highest = min(highest, i);
  highest = -block_max(-(float)highest);
  if (threadIdx.x != 0) return;
  int id = highest;
  if (uniform >= 0.0) {
    double left = before;
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
  if (head >= query + key_value) {
    copy(x, values + (cell * key_value + head - query - key_value) * dim, dim);
    return;
  }
  bool is_query = head < query;
  float low[PAIRS], high[PAIRS];
  prepare(x, is_query ? q_norm : k_norm, cos + position * half, sin + position * half, half, eps, low, high);
  store(is_query ? q + (row * query + head) * dim : keys + (cell * key_value + head - query) * dim, half, low, high);
}

// Attention of rows over the cache: row r sees the cells cells[r] - positions[r] ..= cells[r]. A block takes one query
// head of one row: warp w takes positions w, w + warps and so on, each lane PER dimensions. Grid: rows, query heads.
template <typename T, int PER>
__device__ void attend(const T *q, const u32 *cells, const u32 *positions, const T *keys, const T *values, T *out,
                       int query, int key_value, int dim, float scale) {
  const int MOST = 8;  // warps
  __shared__ float tops[MOST], sums[MOST], parts[MOST][WARP * PER];
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
  u64 row = blockIdx.x;
  int head = blockIdx.y, shared = head / (query / key_value), seen = positions[row] + 1;
  u64 first = cells[row] - positions[row];
  float mine[PER], sum_v[PER] = {};
#pragma unroll
  for (int i = 0; i < PER; i++) {
    int c = lane * PER + i;
    mine[i] = c < dim ? number(q[(row * query + head) * dim + c]) * scale : 0.0f;
  }
  float top = -INFINITY, sum = 0.0f;
  for (int j = warp; j < seen; j += warps) {
    u64 at = ((first + j) * key_value + shared) * dim + lane * PER;
    float score = 0.0f, v[PER];
#pragma unroll
    for (int i = 0; i < PER; i++) {
      bool real = lane * PER + i < dim;
      score += real ? mine[i] * number(keys[at + i]) : 0.0f;
      v[i] = real ? number(values[at + i]) : 0.0f;
    }
    score = warp_sum(score);
    float higher = fmaxf(top, score), keep = __expf(top - higher), e = __expf(score - higher);
    top = higher;
    sum = sum * keep + e;
#pragma unroll
    for (int i = 0; i < PER; i++) sum_v[i] = sum_v[i] * keep + e * v[i];
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

extern "C" __global__ void adamw_moments(float *moments, const float *g, u64 count, float beta1, float beta2,
                                         float scale) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float gi = g[i] * scale;
  moments[i] = beta1 * moments[i] + (1.0f - beta1) * gi;
  moments[count + i] = beta2 * moments[count + i] + (1.0f - beta2) * gi * gi;
}

extern "C" __global__ void adamw_apply(float *w, const float *moments, u64 count, float keep, float rate,
                                       float correction2, float epsilon) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  w[i] = w[i] * keep - rate * moments[i] / (sqrtf(moments[count + i] * correction2) + epsilon);
}

// sums[blocks] gets each block's share of the sum of squares.
extern "C" __global__ void sum_of_squares(const float *x, u64 count, float *sums) {
  float sum = 0.0f;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
    sum += x[i] * x[i];
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
ENTRY(adamw_moments)
ENTRY(adamw_apply)
ENTRY(sum_of_squares)

#define KERNEL(name, parameters, arguments)                                          \
  extern "C" __global__ void name##_f32 parameters(float) { name<float> arguments; } \
  extern "C" __global__ void name##_bf16 parameters(bf16) { name<bf16> arguments; }  \
  ENTRY(name##_f32)                                                                  \
  ENTRY(name##_bf16)

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
#define P(T) (const T *x, T *y, u64 count, int width)
KERNEL(swiglu, P, (x, y, count, width))
#undef P
#define P(T) (const T *x, const T *dy, T *dx, T *y, u64 count, int width)
KERNEL(swiglu_backward, P, (x, dy, dx, y, count, width))
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
KERNEL(log_probs_backward, P, (logits, targets, d_log_prob, d_entropy, d, vocabulary, scale))
#undef P
#define P(T)                                                                                                      \
  (const T *packed, const u32 *cells, const u32 *positions, const float *q_norm, const float *k_norm,             \
   const float *cos, const float *sin, T *q, T *keys, T *values, int query, int key_value, int half, float eps)
KERNEL(cache_heads, P,
       (packed, cells, positions, q_norm, k_norm, cos, sin, q, keys, values, query, key_value, half, eps))
#undef P

#define ATTEND(per, type, T)                                                                                       \
  extern "C" __global__ void attend_##per##_##type(const T *q, const u32 *cells, const u32 *positions,             \
                                                   const T *keys, const T *values, T *out, int query,              \
                                                   int key_value, int dim, float scale) {                          \
    attend<T, per>(q, cells, positions, keys, values, out, query, key_value, dim, scale);                          \
  }                                                                                                                \
  ENTRY(attend_##per##_##type)
#define ATTENDS(per) ATTEND(per, f32, float) ATTEND(per, bf16, bf16)
ATTENDS(1)
ATTENDS(2)
ATTENDS(4)
ATTENDS(8)
