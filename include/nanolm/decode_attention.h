// Lesson 07: a few queries against a long cache. The keys are split into parts that are computed apart and merged.
//
//   part p:  O_p, lse_p = attention over its keys alone      m = max_p lse_p      w_p = exp(lse_p - m)
//   O = sum_p w_p O_p / sum_p w_p                            lse = m + ln sum_p w_p
//
// Shapes, masks, grouped heads and empty rows: nanolm/attention_shape.h. K and V are the whole cache; causal is about
// the places of the keys in it, so that a part's rows may see all, some or none of its keys. A row that sees no key of
// a part has O_p = 0 and lse_p = -inf, and its part changes nothing in the merged row. Accumulator: float. Error bound
// of O, relative to max|V|, and of lse, with s the largest scale * sum_h |Q K|:
//   2^-23 * ((4 + sqrt(head_dim)) s + 2 sqrt(seqlen_k) + 8)
// Throws std::invalid_argument for bad shapes, num_splits < 1, a range outside the cache and spans of the wrong size;
// nothing is written.
// Source: Dao et al. 2023, "Flash-Decoding for long-context inference"; Ainslie et al. 2023, "GQA".
#pragma once

#include <span>

#include "nanolm/attention_shape.h"

namespace nanolm {

// Keys first to last - 1.
struct KeyRange {
  std::int64_t first, last;
};

// The keys of part number `part`. In order and without gaps; sizes differ by at most one, the longer parts come first:
// 10 keys in 4 parts are 3, 3, 2, 2. With num_splits > seqlen_k the last parts are empty.
KeyRange part_keys(std::int64_t seqlen_k, std::int64_t num_splits, std::int64_t part);

// Attention over the given keys alone. O_part [batch, q_heads, seqlen_q, head_dim], divided by the part's own sum;
// lse_part [batch, q_heads, seqlen_q]. Every element of both is written.
void attention_part(const AttentionShape& shape, const KeyRange& keys, std::span<const float> Q,
                    std::span<const float> K, std::span<const float> V, std::span<float> O_part,
                    std::span<float> lse_part);

// O_parts [num_splits, rows, head_dim], lse_parts [num_splits, rows]; O [rows, head_dim], lse [rows]. O of a part whose
// lse is -inf is not read. NaN in a part's lse gives NaN.
void merge_partials(std::int64_t num_splits, std::int64_t rows, std::int64_t head_dim, std::span<const float> O_parts,
                    std::span<const float> lse_parts, std::span<float> O, std::span<float> lse);

// All of it, in num_splits parts. Scratch: O and lse of each part.
void decode_attention(const AttentionShape& shape, std::int64_t num_splits, std::span<const float> Q,
                      std::span<const float> K, std::span<const float> V, std::span<float> O, std::span<float> lse);

// FLOP per byte of decoding one token with S = seqlen_k cached: N = q_heads, K = kv_heads, b = bytes_per_element.
//   4 N S H / (b (2 K S H + 2 N H)) = (2 / b) N S / (K S + N)
// K and V are read once for each kv head, Q and O once for each query head. Batch and head_dim cancel.
double decode_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element);

// The same with a cache of another width: kv_bytes_per_element for K and V, bytes_per_element for Q and O.
double quantized_cache_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element,
                                 double kv_bytes_per_element);

// What decode_intensity approaches, from below, in a long cache: 2 N / (b K), that is N / K in bf16.
double decode_intensity_limit(double q_heads, double kv_heads, double bytes_per_element);

// Given: the checks that each function above begins with.
inline void check_part_keys(std::int64_t seqlen_k, std::int64_t num_splits, std::int64_t part) {
  require(seqlen_k >= 0, "seqlen_k must not be negative, got ", seqlen_k);
  require(num_splits >= 1, "num_splits must be positive, got ", num_splits);
  require(part >= 0 && part < num_splits, "part ", part, " does not exist: num_splits is ", num_splits);
}
inline void check_part(const AttentionShape& shape, const KeyRange& keys, std::span<const float> Q,
                       std::span<const float> K, std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_shape(shape);
  require(0 <= keys.first && keys.first <= keys.last && keys.last <= shape.seqlen_k, "keys ", keys.first, " to ",
          keys.last, " are no range within seqlen_k ", shape.seqlen_k);
  require_size("Q", Q.size(), q_size(shape));
  require_size("K", K.size(), kv_size(shape));
  require_size("V", V.size(), kv_size(shape));
  require_size("O", O.size(), q_size(shape));
  require_size("lse", lse.size(), lse_size(shape));
}
inline void check_merge_partials(std::int64_t num_splits, std::int64_t rows, std::int64_t head_dim,
                                 std::span<const float> O_parts, std::span<const float> lse_parts, std::span<float> O,
                                 std::span<float> lse) {
  require(num_splits >= 1, "num_splits must be positive, got ", num_splits);
  require(head_dim >= 1, "head_dim must be positive, got ", head_dim);
  require_size("O_parts", O_parts.size(), checked_product("O_parts", {num_splits, rows, head_dim}));
  require_size("lse_parts", lse_parts.size(), checked_product("lse_parts", {num_splits, rows}));
  require_size("O", O.size(), checked_product("O", {rows, head_dim}));
  require_size("lse", lse.size(), rows);
}
inline void check_decode(const AttentionShape& shape, std::int64_t num_splits, std::span<const float> Q,
                         std::span<const float> K, std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_part(shape, {0, 0}, Q, K, V, O, lse);
  require(num_splits >= 1, "num_splits must be positive, got ", num_splits);
  checked_product("O_parts", {num_splits, q_size(shape)});
}
// Sizes are whole numbers in doubles; kv heads must divide query heads.
inline void check_intensity(double q_heads, double kv_heads, std::initializer_list<double> others) {
  for (const double c : {q_heads, kv_heads})
    require(std::isfinite(c) && c >= 1 && c == std::floor(c), "a head count must be a positive whole number, got ", c);
  require(std::fmod(q_heads, kv_heads) == 0, "q_heads must be a multiple of kv_heads, got ", q_heads, " and ",
          kv_heads);
  for (const double c : others) require(std::isfinite(c) && c > 0, "a size must be positive and finite, got ", c);
}

}  // namespace nanolm
