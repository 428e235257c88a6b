// What a C function of a lesson is made of.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#if __cplusplus >= 202002L  // a .cu has C++17
#include <span>
#endif

#include "nanolm/attention_shape.h"

namespace nanolm {

// sizes: batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim.
inline AttentionShape shape_of(const std::int64_t* sizes, float scale, int causal) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], scale, causal != 0};
}
#if __cplusplus >= 202002L
template <class T>
std::span<T> of(T* data, std::int64_t size) {
  return {data, static_cast<std::size_t>(size)};
}
#endif
// 0: done; 1: refused, and standard error says why.
template <class Function>
int reported(const Function& call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace nanolm
