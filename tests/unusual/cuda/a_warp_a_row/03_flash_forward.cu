// Right, in an unusual style: a warp for each row, and nothing in shared memory. Of 32 keys a lane takes one for the
// scores; for the values it takes columns, and the weights come by shuffles. No barrier anywhere: a shuffle waits for
// its lanes, and what it moves lies in registers. K and V are read for each row again, from the caches.
#include <limits>

#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

namespace {
constexpr int kLanes = 32;
constexpr int kWarps = 4;
constexpr int kMaxHeadDim = 256, kColumns = kMaxHeadDim / kLanes;  // of one lane
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

__device__ float warp_max(float value) {
  for (int lanes = 1; lanes < kLanes; lanes *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  return value;
}
__device__ float warp_sum(float value) {
  for (int lanes = 1; lanes < kLanes; lanes *= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

__device__ float dot(const float* a, const float* b, int head_dim) {
  float sum = 0;
  for (int h = 0; h < head_dim; ++h) sum = fmaf(a[h], b[h], sum);
  return sum;
}

__global__ void __launch_bounds__(kLanes* kWarps) warp_kernel(ForwardArgs<float> args) {
  const AttentionShape& s = args.shape;
  const int lane = static_cast<int>(threadIdx.x), head_dim = static_cast<int>(s.head_dim);
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.y;
  if (row >= s.batch * s.q_heads * s.seqlen_q) return;  // the whole warp
  const std::int64_t head = row / s.seqlen_q, q = row % s.seqlen_q;
  const std::int64_t kv = head / (s.q_heads / s.kv_heads) * s.seqlen_k * head_dim;
  const float *const Q = args.Q + row * head_dim, *const K = args.K + kv, *const V = args.V + kv;
  std::int64_t keys = s.seqlen_k;
  if (s.causal) keys = max(std::int64_t{0}, min(keys, q + s.seqlen_k - s.seqlen_q + 1));

  float row_max = kMinusInf, row_sum = 0, O[kColumns] = {};
  for (std::int64_t first = 0; first < keys; first += kLanes) {
    const int here = static_cast<int>(min(std::int64_t{kLanes}, keys - first));
    const float score = lane < here ? s.scale * dot(Q, K + (first + lane) * head_dim, head_dim) : kMinusInf;
    const float new_max = fmaxf(row_max, warp_max(score));
    const float shift = new_max == kMinusInf ? 0.0f : new_max;  // -inf - (-inf) is NaN
    const float rescale = expf(row_max - shift), p = expf(score - shift);
    row_sum = row_sum * rescale + warp_sum(p);
    row_max = new_max;
    for (float& o : O) o *= rescale;
    for (int j = 0; j < here; ++j) {
      const float weight = __shfl_sync(~0u, p, j);
      for (int c = 0; c < kColumns; ++c)
        if (lane + c * kLanes < head_dim) O[c] = fmaf(weight, V[(first + j) * head_dim + lane + c * kLanes], O[c]);
    }
  }
  const float factor = row_sum == 0.0f ? 0.0f : 1.0f / row_sum;
  for (int c = 0; c < kColumns; ++c)
    if (lane + c * kLanes < head_dim) args.O[row * head_dim + lane + c * kLanes] = O[c] * factor;
  if (lane == 0) args.lse[row] = row_max + logf(row_sum);
}

void forward(const ForwardArgs<float>& args) {
  check_rung(flash_forward, args.shape);
  const std::int64_t blocks = block_count(lse_size(args.shape), kWarps);
  if (blocks == 0) return;
  warp_kernel<<<static_cast<unsigned>(blocks), dim3(kLanes, kWarps), 0, args.stream>>>(args);
  CUDA_CHECK(cudaGetLastError());
}

bool supports(const AttentionShape& shape, const Device&) { return shape.head_dim <= kMaxHeadDim; }

}  // namespace

const Rung flash_forward = [] {
  Rung r;
  r.name = "a_warp_a_row/03_flash_forward";
  r.idea = "Online softmax by shuffles alone";
  r.forward = forward;
  r.supports = supports;
  return r;
}();

}  // namespace nanolm::cuda
