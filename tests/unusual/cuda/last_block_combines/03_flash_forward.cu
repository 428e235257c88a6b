// Right, in an unusual style: the keys of a row are split among four blocks, and the block that finishes last combines
// what they leave in the workspace, in the same launch. Nothing orders two blocks but this: a block that has written,
// then __threadfence(), then counted itself by an atomic, is seen by the block whose atomic counts the last.
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kLanes = 32, kRows = 4, kSplits = 4;                 // a block has a warp for each row
constexpr int kMaxHeadDim = 128, kColumns = kMaxHeadDim / kLanes;  // of one lane
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

__device__ float warp_max(float value) {
  for (int lanes = 1; lanes < kLanes; lanes *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  return value;
}
__device__ float warp_sum(float value) {
  for (int lanes = 1; lanes < kLanes; lanes *= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

// A warp's softmax over some keys; a lane has every 32nd column of O.
struct Partial {
  float row_max = kMinusInf, row_sum = 0, O[kColumns] = {};
};

// Folds in another one whose O is not divided by row_sum.
__device__ void merge(Partial& to, float row_max, float row_sum, const float (&O)[kColumns]) {
  const float new_max = fmaxf(to.row_max, row_max), shift = new_max == kMinusInf ? 0.0f : new_max;
  const float keep = expf(to.row_max - shift), add = expf(row_max - shift);
  to.row_max = new_max;
  to.row_sum = to.row_sum * keep + row_sum * add;
  for (int c = 0; c < kColumns; ++c) to.O[c] = to.O[c] * keep + O[c] * add;
}

__device__ Partial attend(const ForwardArgs<float>& args, std::int64_t row, std::int64_t begin, std::int64_t end) {
  const AttentionShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x), head_dim = static_cast<int>(s.head_dim);
  const std::int64_t kv = row / s.seqlen_q / (s.q_heads / s.kv_heads) * s.seqlen_k * head_dim;
  Partial partial;
  for (std::int64_t first = begin; first < end; first += kLanes) {
    const int keys = static_cast<int>(min(std::int64_t{kLanes}, end - first));
    float score = kMinusInf, O[kColumns] = {};
    if (lane < keys) {
      score = 0;
      for (int h = 0; h < head_dim; ++h)
        score = fmaf(args.Q[row * head_dim + h], args.K[kv + (first + lane) * head_dim + h], score);
      score *= s.scale;
    }
    const float row_max = warp_max(score), p = expf(score - (row_max == kMinusInf ? 0.0f : row_max));
    for (int j = 0; j < keys; ++j) {
      const float weight = __shfl_sync(~0u, p, j);
      for (int c = 0; c < kColumns; ++c)
        if (lane + c * kLanes < head_dim)
          O[c] = fmaf(weight, args.V[kv + (first + j) * head_dim + lane + c * kLanes], O[c]);
    }
    merge(partial, row_max, warp_sum(p), O);
  }
  return partial;
}

// [rows][kSplits] of these, each a row_max, a row_sum and head_dim elements of O; behind them a counter for each
// block's worth of rows.
__host__ __device__ std::int64_t partial_floats(const AttentionShape& s) { return s.head_dim + 2; }

__global__ void __launch_bounds__(kLanes* kRows) split_kernel(ForwardArgs<float> args, std::int64_t rows, int* done) {
  __shared__ bool is_last;
  const AttentionShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x), split = static_cast<int>(blockIdx.x % kSplits);
  const std::int64_t group = blockIdx.x / kSplits, row = group * kRows + threadIdx.y;
  float* const parts = static_cast<float*>(args.workspace) + row * kSplits * partial_floats(s);
  if (row < rows) {
    std::int64_t keys = s.seqlen_k;
    if (s.causal) keys = max(std::int64_t{0}, min(keys, row % s.seqlen_q + s.seqlen_k - s.seqlen_q + 1));
    const Partial mine = attend(args, row, keys * split / kSplits, keys * (split + 1) / kSplits);
    float* const part = parts + split * partial_floats(s);
    if (lane == 0) part[0] = mine.row_max, part[1] = mine.row_sum;
    for (int c = 0; c < kColumns; ++c)
      if (lane + c * kLanes < s.head_dim) part[2 + lane + c * kLanes] = mine.O[c];
  }
  __threadfence();
  __syncthreads();  // all of the block have written, and their fences are behind them
  if (lane == 0 && threadIdx.y == 0) is_last = atomicAdd(done + group, 1) == kSplits - 1;
  __syncthreads();
  if (!is_last || row >= rows) return;
  __threadfence();
  Partial whole;
  for (int other = 0; other < kSplits; ++other) {  // in this order, whoever was last
    const float* const part = parts + other * partial_floats(s);
    float O[kColumns] = {};
    for (int c = 0; c < kColumns; ++c)
      if (lane + c * kLanes < s.head_dim) O[c] = part[2 + lane + c * kLanes];
    merge(whole, part[0], part[1], O);
  }
  const float factor = whole.row_sum == 0.0f ? 0.0f : 1.0f / whole.row_sum;
  for (int c = 0; c < kColumns; ++c)
    if (lane + c * kLanes < s.head_dim) args.O[row * s.head_dim + lane + c * kLanes] = whole.O[c] * factor;
  if (lane == 0) args.lse[row] = whole.row_max + logf(whole.row_sum);
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t rows = lse_size(args.shape), groups = block_count(rows, kRows);
  if (rows == 0) return;
  int* const done = static_cast<int*>(args.workspace) + rows * kSplits * partial_floats(args.shape);
  CUDA_CHECK(cudaMemsetAsync(done, 0, static_cast<std::size_t>(groups) * sizeof(int), args.stream));
  split_kernel<<<static_cast<unsigned>(groups * kSplits), dim3(kLanes, kRows), 0, args.stream>>>(args, rows, done);
  CUDA_CHECK(cudaGetLastError());
}

std::int64_t workspace_bytes(const AttentionShape& s) {
  const std::int64_t rows = lse_size(s);
  return checked_product("workspace", {4, rows, kSplits, partial_floats(s)}) + 4 * block_count(rows, kRows);
}
bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= kMaxHeadDim; }

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "last_block_combines/03_flash_forward";
  r.idea = "Keys split among blocks; the last one combines";
  r.forward = forward;
  r.supports = supports;
  r.workspace_bytes = workspace_bytes;
  return r;
}();

}  // namespace nanolm::cuda
