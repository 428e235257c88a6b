// A chain of elementwise operations, as a kernel for each operation and as one (notes/cuda/01_fused_elementwise.md).
//
// Such a kernel takes as long as its bytes: 4 in and 4 out an element. k kernels move 8k bytes an element, one moves 8:
// what lies between two operations stays in a register.
//
// Budget. An operation costs a warp two loads of coefficients and three instructions of the loop, besides its
// multiply-adds: 6 instructions an element where a thread holds one, 1.3 where it holds 16. k = 16 on 2^26 elements
// makes 201 or 44 million instructions. 132 SMs issue four a clock, about a million in a us: 200 us or 44, beside the
// 160 us in which an H100's memory moves 0.54 GB.
#include <algorithm>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {
constexpr int kThreads = 256;
constexpr int kFours = 4;  // float4 of a thread

// Travels as a parameter of the kernel: every thread reads it from constant memory, not from main memory.
struct Chain {
  int operations;
  float multiply[kMaxOperations];
  float add[kMaxOperations];
};

// All operations on each of n elements: a coefficient that is loaded serves all of them.
template <int n>
__device__ void apply(const Chain& chain, float (&values)[n]) {
  for (int i = 0; i < chain.operations; ++i)
    for (int j = 0; j < n; ++j) values[j] = fmaf(values[j], chain.multiply[i], chain.add[i]);
}

// A thread takes kFours float4, kThreads apart, so that a warp's loads lie side by side. All are on their way before
// the first is used.
__device__ void load_apply_store(const Chain& chain, const float4* x, float4* y, std::int64_t fours) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kFours + threadIdx.x;
  float values[4 * kFours] = {};
  for (int i = 0; i < kFours; ++i)
    if (first + i * kThreads < fours) {
      const float4 v = x[first + i * kThreads];
      values[4 * i] = v.x, values[4 * i + 1] = v.y, values[4 * i + 2] = v.z, values[4 * i + 3] = v.w;
    }
  apply(chain, values);
  for (int i = 0; i < kFours; ++i)
    if (first + i * kThreads < fours)
      y[first + i * kThreads] = make_float4(values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
}

// A float4 must start at a multiple of 16 bytes. x and y of the first `head` elements do not; they, and the last few,
// go one by one. Where x and y are not misaligned by the same amount all elements do.
[[maybe_unused]] __global__ void elementwise_kernel(const float* x, float* y, std::int64_t count, std::int64_t head,
                                                    Chain chain) {
  const std::int64_t fours = (count - head) / 4, singles = count - 4 * fours;
  load_apply_store(chain, reinterpret_cast<const float4*>(x + head), reinterpret_cast<float4*>(y + head), fours);
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (std::int64_t i = thread; i < singles; i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t at = i < head ? i : i + 4 * fours;
    float value[1] = {x[at]};
    apply(chain, value);
    y[at] = value[0];
  }
}

// How many elements come before the first that can be read and written in float4.
std::int64_t misaligned(const float* x, const float* y, std::int64_t count) {
  const std::uintptr_t x_bytes = reinterpret_cast<std::uintptr_t>(x) % 16;
  if (x_bytes != reinterpret_cast<std::uintptr_t>(y) % 16) return count;
  return std::min<std::int64_t>(count, (16 - x_bytes) % 16 / sizeof(float));
}

// From x to args.y. A thread for kFours float4, or for one of the elements that go one by one.
[[maybe_unused]] void launch(const ElementwiseArgs& args, const float* x, [[maybe_unused]] const Chain& chain) {
  const std::int64_t head = misaligned(x, args.y, args.count), fours = (args.count - head) / 4;
  const std::int64_t threads = std::max((fours + kFours - 1) / kFours, args.count - 4 * fours);
  if (threads == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((threads + kThreads - 1) / kThreads, 0x7fffffff));
  elementwise_kernel<<<blocks, kThreads, 0, args.stream>>>(x, args.y, args.count, head, chain);
  CUDA_CHECK(cudaGetLastError());
}

void chain(const ElementwiseArgs& args) {
  check_elementwise(args);
  const float* x = args.x;
  for (int i = 0; i < args.operations; ++i) {
    const Chain one{1, {args.multiply[i]}, {args.add[i]}};
    launch(args, x, one);
    x = args.y;
  }
}

void fused(const ElementwiseArgs& args) {
  check_elementwise(args);
  Chain all{args.operations, {}, {}};
  std::copy_n(args.multiply, kMaxOperations, all.multiply);
  std::copy_n(args.add, kMaxOperations, all.add);
  launch(args, args.x, all);
}

}  // namespace

const Rung fused_elementwise = [] {
  Rung r;
  r.name = "cuda/01_fused_elementwise";
  r.idea = "A chain of elementwise operations moves its data once when it is one kernel";
  r.chain = chain;
  r.fused = fused;
  return r;
}();

}  // namespace nanolm::cuda
