// The ladder's contract: what each rung under cuda/ defines, and what tests and benches call.
//
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h. All pointers but those inside the args are
// device pointers, contiguous, aligned to their element at least. A launcher enqueues its kernels on `stream` and
// returns: it never allocates and never synchronises. Scratch comes as `workspace`, workspace_bytes(shape) bytes
// aligned to 256, whose contents are not initialised and not kept. Calls on two streams need two workspaces.
// Accumulators are float. Error bounds are those of lessons 04 and 05.
// Throws, before anything is launched: std::invalid_argument for a bad or unsupported shape (supports() is false),
// CudaError where a launch fails.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <vector>

#include "nanolm/attention_shape.h"
#include "nanolm/cuda/check.h"

namespace nanolm::cuda {

using bf16 = __nv_bfloat16;

// y = x, then `operations` times y = y * multiply[i] + add[i], each one fused multiply-add. x and y may be one array.
constexpr int kMaxOperations = 16;
struct ElementwiseArgs {
  const float* x = nullptr;  // [count]
  float* y = nullptr;        // [count]
  std::int64_t count = 0;
  int operations = 1;  // 1 to kMaxOperations
  float multiply[kMaxOperations] = {};
  float add[kMaxOperations] = {};
  cudaStream_t stream = nullptr;
};
using Elementwise = void (*)(const ElementwiseArgs&);

template <class T>
struct ForwardArgs {
  AttentionShape shape;
  const T* Q = nullptr;
  const T* K = nullptr;
  const T* V = nullptr;
  T* O = nullptr;
  float* lse = nullptr;
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};
template <class T>
using ForwardFn = void (*)(const ForwardArgs<T>&);

// One query a sequence: shape.seqlen_q is 1, K and V are the cache. O and lse do not depend on `splits`, up to
// rounding.
constexpr int kMaxSplits = 1024;
template <class T>
struct DecodeArgs {
  AttentionShape shape;
  const T* Q = nullptr;
  const T* K = nullptr;
  const T* V = nullptr;
  T* O = nullptr;
  float* lse = nullptr;
  int splits = 0;  // parts that the cache is cut into, at most kMaxSplits; 0: chosen from the device's SMs
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};
template <class T>
using DecodeFn = void (*)(const DecodeArgs<T>&);

template <class T>
struct BackwardArgs {
  AttentionShape shape;
  const T* Q = nullptr;
  const T* K = nullptr;
  const T* V = nullptr;
  const T* O = nullptr;
  const T* dO = nullptr;
  const float* lse = nullptr;
  T* dQ = nullptr;
  T* dK = nullptr;
  T* dV = nullptr;
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};
template <class T>
using BackwardFn = void (*)(const BackwardArgs<T>&);

struct Device {
  int compute_capability = 0;  // 90 for 9.0
  int sms = 0;
  int shared_bytes_per_block = 0;  // the most that a kernel may ask for
};
inline Device current_device() {
  int id = 0, major = 0, minor = 0;
  Device device;
  CUDA_CHECK(cudaGetDevice(&id));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, id));
  CUDA_CHECK(cudaDeviceGetAttribute(&device.sms, cudaDevAttrMultiProcessorCount, id));
  CUDA_CHECK(cudaDeviceGetAttribute(&device.shared_bytes_per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, id));
  device.compute_capability = 10 * major + minor;
  return device;
}

// One row of the table. A rung has some of the functions; the others are null.
struct Rung {
  const char* name = "";
  const char* idea = "";               // one sentence
  int lowest_compute_capability = 70;  // 75 for 7.5
  Elementwise chain = nullptr;         // a kernel for each operation
  Elementwise fused = nullptr;         // one kernel
  ForwardFn<float> forward = nullptr;
  ForwardFn<bf16> forward_bf16 = nullptr;
  DecodeFn<float> decode = nullptr;
  DecodeFn<bf16> decode_bf16 = nullptr;
  BackwardFn<float> backward = nullptr;
  BackwardFn<bf16> backward_bf16 = nullptr;
  bool (*supports)(const AttentionShape&, const Device&) = nullptr;  // null: every shape
  std::int64_t (*workspace_bytes)(const AttentionShape&) = nullptr;  // null: none
  std::int64_t (*decode_workspace_bytes)(const AttentionShape&, int splits) = nullptr;
};

// The rows, each defined by its .cu.
extern const Rung fused_elementwise, naive_attention, flash_forward, flash_decode, flash_backward;

// The table: the rows of the rungs that a program is linked with; its build defines it.
std::vector<const Rung*> ladder();

// Given: the checks behind the first statement of a launcher.
inline void check_elementwise(const ElementwiseArgs& a) {
  require(a.count >= 0, "count must not be negative, got ", a.count);
  require(a.operations >= 1 && a.operations <= kMaxOperations, "operations must be 1 to ", kMaxOperations, ", got ",
          a.operations);
}
inline void check_decode(const AttentionShape& shape, int splits) {
  require(shape.seqlen_q == 1, "decode has one query a sequence, got seqlen_q ", shape.seqlen_q);
  require(splits >= 0 && splits <= kMaxSplits, "splits must be 0 to ", kMaxSplits, ", got ", splits);
}
// Throws where the rung does not serve this shape on the current device.
inline void check_rung(const Rung& rung, const AttentionShape& shape) {
  check_shape(shape);
  q_size(shape), kv_size(shape);  // refuse what does not fit 64 bits
  const Device device = current_device();
  require(device.compute_capability >= rung.lowest_compute_capability, rung.name, " needs compute capability ",
          rung.lowest_compute_capability / 10.0, ", this device has ", device.compute_capability / 10.0);
  require(!rung.supports || rung.supports(shape, device), rung.name, " does not serve head_dim ", shape.head_dim,
          " on a device with ", device.shared_bytes_per_block, " bytes of shared memory a block");
}

}  // namespace nanolm::cuda
