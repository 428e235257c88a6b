// The ladder's launchers as C functions, for scripts/compare_torch_cuda.py, which hands them tensors of PyTorch.
#include <algorithm>
#include <string>

#include "c_call.h"
#include "nanolm/cuda/ladder.h"

namespace nanolm::cuda {

// Q, K, V and O of any type, and what is not there null.
struct Tensors {
  const void *Q, *K, *V;
  void* O;
  float* lse;
  void* workspace;
  void* stream;
};
namespace {

const Rung& rung_of(const char* name) {
  for (const Rung* rung : ladder())
    if (std::string(name) == rung->name) return *rung;
  throw std::invalid_argument(std::string("no rung is called ") + name);
}

template <class Args>
Args arguments(const AttentionShape& shape, const Tensors& t) {
  Args args;
  args.shape = shape;
  args.Q = static_cast<decltype(args.Q)>(t.Q), args.K = static_cast<decltype(args.K)>(t.K);
  args.V = static_cast<decltype(args.V)>(t.V);
  args.lse = t.lse, args.workspace = t.workspace, args.stream = static_cast<cudaStream_t>(t.stream);
  return args;
}
template <class T>
void decode(DecodeFn<T> launcher, const AttentionShape& shape, const Tensors& t) {
  auto args = arguments<DecodeArgs<T>>(shape, t);
  args.O = static_cast<T*>(t.O);
  launcher(args);
}

}  // namespace
}  // namespace nanolm::cuda

using namespace nanolm;
using namespace nanolm::cuda;

extern "C" {

// Bytes of scratch memory; -1 where the rung is unknown.
std::int64_t nanolm_workspace(const char* rung, const std::int64_t* sizes, int is_decode) {
  std::int64_t bytes = -1;
  reported([&] {
    const Rung& r = rung_of(rung);
    const AttentionShape s = shape_of(sizes, 1, 0);
    bytes = is_decode           ? r.decode_workspace_bytes ? r.decode_workspace_bytes(s, 0) : 0
            : r.workspace_bytes ? r.workspace_bytes(s)
                                : 0;
  });
  return bytes;
}

// A chain of y = y * multiply[i] + add[i]: a kernel for each operation, or one for all.
int nanolm_elementwise(const char* rung, int is_fused, std::int64_t count, int operations, const float* multiply,
                       const float* add, const float* x, float* y, void* stream) {
  return reported([&] {
    ElementwiseArgs args;
    args.x = x, args.y = y, args.count = count, args.operations = operations;
    std::copy_n(multiply, operations, args.multiply);
    std::copy_n(add, operations, args.add);
    args.stream = static_cast<cudaStream_t>(stream);
    (is_fused ? rung_of(rung).fused : rung_of(rung).chain)(args);
  });
}

int nanolm_forward(const char* rung, const std::int64_t* sizes, float scale, int causal, const Tensors* tensors) {
  return reported([&] {
    auto args = arguments<ForwardArgs<float>>(shape_of(sizes, scale, causal), *tensors);
    args.O = static_cast<float*>(tensors->O);
    rung_of(rung).forward(args);
  });
}

int nanolm_decode(const char* rung, const std::int64_t* sizes, float scale, int is_bf16, const Tensors* tensors) {
  return reported([&] {
    const AttentionShape s = shape_of(sizes, scale, 0);
    const Rung& r = rung_of(rung);
    is_bf16 ? decode(r.decode_bf16, s, *tensors) : decode(r.decode, s, *tensors);
  });
}

int nanolm_backward(const char* rung, const std::int64_t* sizes, float scale, int causal, const Tensors* tensors,
                    const float* dO, float* dQ, float* dK, float* dV) {
  return reported([&] {
    auto args = arguments<BackwardArgs<float>>(shape_of(sizes, scale, causal), *tensors);
    args.O = static_cast<const float*>(tensors->O);
    args.dO = dO, args.dQ = dQ, args.dK = dK, args.dV = dV;
    rung_of(rung).backward(args);
  });
}

}  // extern "C"
