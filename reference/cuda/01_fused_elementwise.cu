// A chain of elementwise operations, as a kernel for each operation and as one (notes/cuda/01_fused_elementwise.md).
//
// A thread loads 16 bytes, computes and stores 16 bytes. Such a kernel takes as long as its bytes: 4 in and 4 out an
// element. k kernels move 8k bytes an element, one moves 8: what lies between two operations stays in a register.
#include <algorithm>

#include "nanolm/cuda/ladder.h"
#include "nanolm/todo.h"

namespace nanolm::cuda {

namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 0x7fffffff;

// Travels as a parameter of the kernel: every thread reads it from constant memory, not from main memory.
struct Chain {
  int operations;
  float multiply[kMaxOperations];
  float add[kMaxOperations];
};

// All operations on one element.
__device__ float apply(const Chain& chain, float x) {
  for (int i = 0; i < chain.operations; ++i) x = fmaf(x, chain.multiply[i], chain.add[i]);
  return x;
}

// A float4 must start at a multiple of 16 bytes. x and y of the first `head` elements do not; they, and the last few,
// go one by one. Where x and y are not misaligned by the same amount all elements do.
__global__ void elementwise_kernel(const float* x, float* y, std::int64_t count, std::int64_t head, Chain chain) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t fours = (count - head) / 4;
  const float4* x4 = reinterpret_cast<const float4*>(x + head);
  float4* y4 = reinterpret_cast<float4*>(y + head);
  for (std::int64_t i = thread; i < fours; i += threads) {
    const float4 v = x4[i];
    y4[i] = make_float4(apply(chain, v.x), apply(chain, v.y), apply(chain, v.z), apply(chain, v.w));
  }
  for (std::int64_t i = thread; i < head; i += threads) y[i] = apply(chain, x[i]);
  for (std::int64_t i = head + 4 * fours + thread; i < count; i += threads) y[i] = apply(chain, x[i]);
}

// How many elements come before the first that can be read and written in float4.
std::int64_t misaligned(const float* x, const float* y, std::int64_t count) {
  const std::uintptr_t x_bytes = reinterpret_cast<std::uintptr_t>(x) % 16;
  if (x_bytes != reinterpret_cast<std::uintptr_t>(y) % 16) return count;
  return std::min<std::int64_t>(count, (16 - x_bytes) % 16 / sizeof(float));
}

void launch(const float* x, float* y, std::int64_t count, const Chain& chain, cudaStream_t stream) {
  const std::int64_t head = misaligned(x, y, count);
  const std::int64_t work = std::max(head, (count - head) / 4 + 1);  // elements, or float4
  const std::int64_t blocks = std::min((work + kThreads - 1) / kThreads, kMaxBlocks);
  elementwise_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, y, count, head, chain);
  CUDA_CHECK(cudaGetLastError());
}

void chain(const ElementwiseArgs& args) {
  check_elementwise(args);
  if (args.count == 0) return;
  const float* x = args.x;
  for (int i = 0; i < args.operations; ++i) {
    const Chain one{1, {args.multiply[i]}, {args.add[i]}};
    launch(x, args.y, args.count, one, args.stream);
    x = args.y;
  }
}

void fused(const ElementwiseArgs& args) {
  check_elementwise(args);
  if (args.count == 0) return;
  Chain all{args.operations, {}, {}};
  std::copy_n(args.multiply, kMaxOperations, all.multiply);
  std::copy_n(args.add, kMaxOperations, all.add);
  launch(args.x, args.y, args.count, all, args.stream);
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
