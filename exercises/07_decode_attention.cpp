// Decode attention: the cache is split into parts, their results are merged by lse (notes/07_decode_attention.md).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nanolm/decode_attention.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
}  // namespace

KeyRange part_keys(std::int64_t seqlen_k, std::int64_t num_splits, std::int64_t part) {
  check_part_keys(seqlen_k, num_splits, part);
  // TODO: give each part seqlen_k / num_splits keys, and the first ones the remainder. About 3 lines.
  todo();
  // end
}

void attention_part(const AttentionShape& shape, const KeyRange& keys, std::span<const float> Q,
                    std::span<const float> K, std::span<const float> V, std::span<float> O_part,
                    std::span<float> lse_part) {
  check_part(shape, keys, Q, K, V, O_part, lse_part);
  const std::int64_t group = shape.q_heads / shape.kv_heads, dim = shape.head_dim;
  std::vector<float> scores(static_cast<std::size_t>(keys.last - keys.first));
  for (std::int64_t row = 0; row < lse_size(shape); ++row) {
    // row = (batch * q_heads + q_head) * seqlen_q + i, and (batch * q_heads + q_head) / group is the kv head's number.
    const std::int64_t head = row / shape.seqlen_q, i = row % shape.seqlen_q;
    const float* q = Q.data() + row * dim;
    const float* K_head = K.data() + head / group * shape.seqlen_k * dim;
    const float* V_head = V.data() + head / group * shape.seqlen_k * dim;
    float* o = O_part.data() + row * dim;
    float& lse = lse_part.data()[row];
    // TODO: attend to the part's keys that the row sees; O = 0 and lse = -inf when there are none. About 19 lines.
    todo();
    // end
  }
}

void merge_partials(std::int64_t num_splits, std::int64_t rows, std::int64_t head_dim, std::span<const float> O_parts,
                    std::span<const float> lse_parts, std::span<float> O, std::span<float> lse) {
  check_merge_partials(num_splits, rows, head_dim, O_parts, lse_parts, O, lse);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* o = O.data() + row * head_dim;
    // TODO: weigh the parts that are not empty by exp(lse_p - m), add them, divide. About 14 lines.
    todo();
    // end
  }
}

void decode_attention(const AttentionShape& shape, std::int64_t num_splits, std::span<const float> Q,
                      std::span<const float> K, std::span<const float> V, std::span<float> O, std::span<float> lse) {
  check_decode(shape, num_splits, Q, K, V, O, lse);
  // TODO: compute the parts one after another (a GPU does it side by side) and merge them. About 10 lines.
  todo();
  // end
}

double decode_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element) {
  check_intensity(q_heads, kv_heads, {seqlen_k, bytes_per_element});
  // TODO: divide FLOP by bytes. About 1 line.
  todo();
  // end
}

double quantized_cache_intensity(double q_heads, double kv_heads, double seqlen_k, double bytes_per_element,
                                 double kv_bytes_per_element) {
  check_intensity(q_heads, kv_heads, {seqlen_k, bytes_per_element, kv_bytes_per_element});
  // TODO: divide FLOP by bytes, with K and V of their own width. About 1 line.
  todo();
  // end
}

double decode_intensity_limit(double q_heads, double kv_heads, double bytes_per_element) {
  check_intensity(q_heads, kv_heads, {bytes_per_element});
  // TODO: let seqlen_k grow without bound. About 1 line.
  todo();
  // end
}

}  // namespace nanolm
