// Lessons 05 and 10 as C functions, for scripts/fast_steps.py, which compiles it.
#include "c_call.h"
#include "nanolm/fast_attention.h"
#include "nanolm/tiled_attention.h"

using namespace nanolm;

extern "C" int nanolm_fast_attention(const std::int64_t* sizes, float scale, int causal, int threads, const float* Q,
                                     const float* K, const float* V, float* O, float* lse) {
  const AttentionShape s = shape_of(sizes, scale, causal);
  return reported([&] {
    fast_attention(s, threads, of(Q, q_size(s)), of(K, kv_size(s)), of(V, kv_size(s)), of(O, q_size(s)),
                   of(lse, lse_size(s)));
  });
}

extern "C" int nanolm_tiled_attention(const std::int64_t* sizes, float scale, int causal, int, const float* Q,
                                      const float* K, const float* V, float* O, float* lse) {
  const AttentionShape s = shape_of(sizes, scale, causal);
  return reported([&] {
    tiled_attention(s, {64, 64}, of(Q, q_size(s)), of(K, kv_size(s)), of(V, kv_size(s)), of(O, q_size(s)),
                    of(lse, lse_size(s)));
  });
}

// The parts of a block of 96 queries and 256 keys, one call each; `what` counts from the left: 0 fills the scores,
// which is not to be timed, 1 score tiles, 2 fold_scores, 3 value tiles, 4 multiply-adds in registers. Their FLOP are
// returned.
namespace nanolm {
float multiply_add(std::int64_t steps);
extern const double multiply_add_step_flop;
}  // namespace nanolm

extern "C" double nanolm_part(int what, std::int64_t head_dim) {
  alignas(64) static float Q[kBlockQ * 256], panels[kBlockK * 256], S[kBlockQ * kBlockK], O[kBlockQ * 256];
  static float row_max[kBlockQ], row_sum[kBlockQ];
  [[maybe_unused]] static volatile float sink;
  const std::int64_t O_row = padded(head_dim);
  if (what == 0) {
    for (std::int64_t i = 0; i < kBlockQ * kBlockK; ++i) S[i] = static_cast<float>(i % 97) * 0.05f;
    for (float& m : row_max) m = 5;  // no score is larger: O is not scaled
    return 0;
  }
  if (what == 4) {
    sink = multiply_add(20000);
    return 20000 * multiply_add_step_flop;
  }
  for (std::int64_t r = 0; r < kBlockQ && what == 2; ++r)
    fold_scores(kBlockK, head_dim, of(S + r * kBlockK, kBlockK), of(row_max + r, 1), of(row_sum + r, 1),
                of(O + r * O_row, O_row));
  for (std::int64_t k = 0; k < kBlockK && what == 1; k += kTileColumns)
    for (std::int64_t r = 0; r < kBlockQ; r += kTileRows)
      score_tile({head_dim, kTileColumns, false}, of(Q + r * head_dim, kTileRows * head_dim),
                 of(panels + k * head_dim, kTileColumns * head_dim), of(S + r * kBlockK + k, 6 * kBlockK - k));
  for (std::int64_t c = 0; c < head_dim && what == 3; c += kTileColumns)
    for (std::int64_t r = 0; r < kBlockQ; r += kTileRows)
      value_tile({kBlockK, 0, kBlockK, head_dim}, of(S + r * kBlockK, kTileRows * kBlockK),
                 of(panels + c * kBlockK, kTileColumns * kBlockK), of(O + r * O_row + c, 6 * O_row - c));
  return what == 2 ? 0 : 2.0 * kBlockQ * kBlockK * static_cast<double>(head_dim);
}
