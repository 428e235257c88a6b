// What is common to all attention kernels in the tests: a rung in one of its types, and its tensors.
#pragma once

#include <gtest/gtest.h>

#include "nanolm/cuda/ladder.h"
#include "support/all_close.h"
#include "support/cuda_device.h"
#include "support/cuda_memory.h"
#include "support/data.h"
#include "support/oracle.h"

namespace nanolm::cuda {

// A rung in one of its types.
struct Typed {
  const Rung* rung;
  bool is_bf16;

  std::string name() const { return std::string(rung->name) + (is_bf16 ? ", bf16" : ""); }
  bool serves(const AttentionShape& s) const { return !rung->supports || rung->supports(s, current_device()); }
  // The same shape, or one with a head_dim that every rung serves.
  AttentionShape served(AttentionShape s) const {
    if (!serves(s)) s.head_dim = 64, s.scale = 0.125f;
    return s;
  }
  std::size_t element_bytes() const { return is_bf16 ? sizeof(bf16) : sizeof(float); }
  Tensor tensor(const char* tensor_name, const Place& place, unsigned bit) const {
    return {tensor_name, element_bytes(), place.guarded, place.shifted & bit ? 1u : 0u};
  }
  // What the type can hold: the oracle gets the same numbers as the kernel.
  std::vector<float> rounded(std::vector<float> values) const {
    if (is_bf16)
      for (float& v : values) v = __bfloat162float(__float2bfloat16(v));
    return values;
  }
  AttentionData rounded(const AttentionData& d) const { return {rounded(d.Q), rounded(d.K), rounded(d.V)}; }

  Bytes to_bytes(const std::vector<float>& values) const {
    if (!is_bf16) return bytes_of(values);
    std::vector<bf16> narrow;
    for (const float v : values) narrow.push_back(__float2bfloat16(v));
    return bytes_of(narrow);
  }
  std::vector<float> to_floats(const Bytes& bytes) const {
    if (!is_bf16) return values_of<float>(bytes);
    std::vector<float> wide;
    for (const bf16 v : values_of<bf16>(bytes)) wide.push_back(__bfloat162float(v));
    return wide;
  }
};
// An error of the CUDA runtime inside `body` names the rung.
template <class Body>
void named(const Typed& f, Body body) {
  try {
    body();
  } catch (const CudaError& error) {
    throw CudaError(error.code(), f.name() + ": " + error.what());
  }
}

// Largest error of O: that of lessons 04 and 05 and, in bf16, half a unit in the last place (2^-9) of the weights,
// which tensor cores read as bf16, and of O itself.
inline double output_tolerance(const Typed& f, const AttentionShape& s, const oracle::Forward& truth) {
  return oracle::output_tolerance(s, truth) + (f.is_bf16 ? 0x1p-8 * truth.value_magnitude : 0);
}

}  // namespace nanolm::cuda
