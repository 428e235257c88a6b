// Shape of one attention call, shared by lessons 04 to 07, and its given checks.
//
//   Q, O, dO, dQ   [batch, q_heads,  seqlen_q, head_dim]     row-major, contiguous
//   K, V, dK, dV   [batch, kv_heads, seqlen_k, head_dim]
//   lse, delta     [batch, q_heads,  seqlen_q]
//
//   S[i, j] = scale * sum_h Q[i, h] * K[j, h]      P = softmax(S) over j
//   O = P V                                        lse[i] = ln sum_j exp(S[i, j])
//
// Grouped heads: query head h reads kv head h / (q_heads / kv_heads).
// Causal, aligned bottom-right: row i sees key j when j <= i + seqlen_k - seqlen_q.
// A row that sees no key has O = 0, lse = -inf and zero gradients.
// NaN or inf in a row of Q reaches that row alone; in K or V it reaches only rows that see that key in a query head
// that reads that kv head.
#pragma once

#include <cmath>
#include <cstdint>

#include "nanolm/require.h"

namespace nanolm {

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t seqlen_q = 0;
  std::int64_t seqlen_k = 0;
  std::int64_t head_dim = 1;
  float scale = 1.0f;  // usually 1 / sqrt(head_dim)
  bool causal = false;
};

inline std::int64_t q_size(const AttentionShape& s) {
  return checked_product("Q", {s.batch, s.q_heads, s.seqlen_q, s.head_dim});
}
inline std::int64_t kv_size(const AttentionShape& s) {
  return checked_product("K", {s.batch, s.kv_heads, s.seqlen_k, s.head_dim});
}
inline std::int64_t lse_size(const AttentionShape& s) {
  return checked_product("lse", {s.batch, s.q_heads, s.seqlen_q});
}
inline std::int64_t scores_size(const AttentionShape& s) {
  return checked_product("scores", {s.batch, s.q_heads, s.seqlen_q, s.seqlen_k});
}

// Throws std::invalid_argument: a negative size, head_dim or a head count below 1, query heads that the kv heads do not
// divide, a scale that is not a positive finite number. A batch or a length of 0 is allowed.
inline void check_shape(const AttentionShape& s) {
  require(s.batch >= 0, "batch must not be negative, got ", s.batch);
  require(s.seqlen_q >= 0, "seqlen_q must not be negative, got ", s.seqlen_q);
  require(s.seqlen_k >= 0, "seqlen_k must not be negative, got ", s.seqlen_k);
  require(s.head_dim >= 1, "head_dim must be positive, got ", s.head_dim);
  require(s.q_heads >= 1, "q_heads must be positive, got ", s.q_heads);
  require(s.kv_heads >= 1, "kv_heads must be positive, got ", s.kv_heads);
  require(s.q_heads % s.kv_heads == 0, "q_heads must be a multiple of kv_heads, got ", s.q_heads, " and ", s.kv_heads);
  require(std::isfinite(s.scale) && s.scale > 0, "scale must be positive and finite, got ", s.scale);
}

// Tiles of lessons 05 and 06. The last one of a sequence is shorter when the block does not divide its length.
struct Tiling {
  std::int64_t block_q = 64;  // rows of a Q tile
  std::int64_t block_k = 64;  // rows of a K tile and of a V tile
};
inline std::int64_t block_count(std::int64_t length, std::int64_t block) {
  return length / block + (length % block != 0 ? 1 : 0);
}
inline void check_tiling(const Tiling& tiling) {
  require(tiling.block_q >= 1, "block_q must be positive, got ", tiling.block_q);
  require(tiling.block_k >= 1, "block_k must be positive, got ", tiling.block_k);
}

}  // namespace nanolm
