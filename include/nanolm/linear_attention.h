// Lesson 08: attention without softmax, where the order of the two products is free.
//
//   O = (Q K^T) V = Q (K^T V)          causal: O[t] = sum_{u <= t} (Q[t] . K[u]) V[u] = Q[t] state[t]
//                                              state[t] = state[t - 1] + K[t]^T V[t], state[-1] = 0
//
//   Q, K [batch, heads, seqlen, head_dim]   V, O [batch, heads, seqlen, value_dim]   state [head_dim, value_dim]
// all row-major. A scale is left out: it is one factor of O. A batch or a length of 0 is allowed.
// Accumulator: float. Error bound, relative to sum_u sum_h |Q K V|: 2^-23 * (2 sqrt(seqlen + head_dim) + 8).
// Throws std::invalid_argument for bad shapes and for spans of the wrong size; nothing is written.
// Source: Katharopoulos et al. 2020, "Transformers are RNNs: fast autoregressive transformers with linear attention".
#pragma once

#include <cmath>
#include <span>

#include "nanolm/require.h"

namespace nanolm {

struct LinearShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t seqlen = 0;
  std::int64_t head_dim = 1;
  std::int64_t value_dim = 1;
};

// O = (Q K^T) V. The seqlen x seqlen scores of a head may be held.
void scores_first(const LinearShape& shape, std::span<const float> Q, std::span<const float> K,
                  std::span<const float> V, std::span<float> O);

// O = Q (K^T V). Scratch: independent of seqlen.
void state_first(const LinearShape& shape, std::span<const float> Q, std::span<const float> K, std::span<const float> V,
                 std::span<float> O);

// One token of the causal version: adds k^T v to the state, then writes out = q state. A token sees itself.
// q, k [head_dim], v, out [value_dim].
void linear_attention_step(std::span<const float> q, std::span<const float> k, std::span<const float> v,
                           std::span<float> state, std::span<float> out);

// The causal version, token by token with a running state. Scratch: independent of seqlen.
void causal_linear_attention(const LinearShape& shape, std::span<const float> Q, std::span<const float> K,
                             std::span<const float> V, std::span<float> O);

// FLOP of one head in both orders, a multiply-add being 2; the causal version in running form takes the second.
double scores_first_flop(double seqlen, double head_dim, double value_dim);
double state_first_flop(double seqlen, double head_dim, double value_dim);

// The seqlen at which both take the same number of FLOP. Above it state_first takes fewer.
double crossover_seqlen(double head_dim, double value_dim);

// Given: the checks that each function above begins with.
inline void check_linear(const LinearShape& s, std::span<const float> Q, std::span<const float> K,
                         std::span<const float> V, std::span<float> O) {
  require(s.head_dim >= 1, "head_dim must be positive, got ", s.head_dim);
  require(s.value_dim >= 1, "value_dim must be positive, got ", s.value_dim);
  require_size("Q", Q.size(), checked_product("Q", {s.batch, s.heads, s.seqlen, s.head_dim}));
  require_size("K", K.size(), checked_product("K", {s.batch, s.heads, s.seqlen, s.head_dim}));
  require_size("V", V.size(), checked_product("V", {s.batch, s.heads, s.seqlen, s.value_dim}));
  require_size("O", O.size(), checked_product("O", {s.batch, s.heads, s.seqlen, s.value_dim}));
}
inline void check_step(std::span<const float> q, std::span<const float> k, std::span<const float> v,
                       std::span<float> state, std::span<float> out) {
  require_size("k", k.size(), static_cast<std::int64_t>(q.size()));
  require_size("out", out.size(), static_cast<std::int64_t>(v.size()));
  require_size("state", state.size(), static_cast<std::int64_t>(q.size() * v.size()));
}
inline void check_sizes(std::initializer_list<double> sizes) {
  for (const double s : sizes) require(std::isfinite(s) && s > 0, "a size must be positive and finite, got ", s);
}

}  // namespace nanolm
