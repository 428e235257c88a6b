// Whom the trace of lesson 05 blames: never a right kernel, and a wrong one where it goes wrong first.
#include <gtest/gtest.h>

#include <functional>

#include "support/trace.h"

namespace nanolm {
namespace {

// The kernel below, right unless a test changes a part of it.
struct Parts {
  std::function<std::int64_t(const AttentionShape&, std::int64_t)> kv_head =
      [](const AttentionShape& s, std::int64_t q_head) { return q_head / (s.q_heads / s.kv_heads); };
  bool rescales = true, masks = true, divides = true, stores = true;
};
Parts parts;

void update_row(TileLoader::Sram& sram, std::size_t row, std::size_t dim, const std::vector<float>& scores) {
  float new_max = sram.row_max[row];
  for (const float s : scores) new_max = std::max(new_max, s);
  if (new_max == -HUGE_VALF) return;
  const float rescale = parts.rescales ? std::exp(sram.row_max[row] - new_max) : 1.0f;
  sram.row_max[row] = new_max;
  sram.row_sum[row] *= rescale;
  for (std::size_t h = 0; h < dim; ++h) sram.O[row * dim + h] *= rescale;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] == -HUGE_VALF) continue;
    const float p = std::exp(scores[j] - new_max);
    sram.row_sum[row] += p;
    for (std::size_t h = 0; h < dim; ++h) sram.O[row * dim + h] += p * sram.V[j * dim + h];
  }
}

void one_block(const AttentionShape& s, const Tiling& tiling, TileLoader& loader, std::int64_t q_block,
               std::int64_t rows_q, std::int64_t kv_batch, std::int64_t kv_head) {
  TileLoader::Sram& sram = loader.sram();
  const auto dim = static_cast<std::size_t>(s.head_dim);
  for (std::int64_t k_block = 0; k_block < loader.k_blocks(); ++k_block) {
    const std::int64_t rows_k = loader.load_K(kv_batch, kv_head, k_block);
    loader.load_V(kv_batch, kv_head, k_block);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows_q); ++i) {
      const std::int64_t last = q_block * tiling.block_q + std::int64_t(i) + s.seqlen_k - s.seqlen_q;
      std::vector<float> scores(static_cast<std::size_t>(rows_k));
      for (std::size_t j = 0; j < scores.size(); ++j) {
        for (std::size_t h = 0; h < dim; ++h) scores[j] += s.scale * sram.Q[i * dim + h] * sram.K[j * dim + h];
        if (s.causal && parts.masks && k_block * tiling.block_k + std::int64_t(j) > last) scores[j] = -HUGE_VALF;
      }
      update_row(sram, i, dim, scores);
    }
  }
  for (std::size_t n = 0; parts.divides && n < static_cast<std::size_t>(rows_q) * dim; ++n)
    if (sram.row_sum[n / dim] > 0) sram.O[n] /= sram.row_sum[n / dim];
  if (parts.stores) loader.store_O();
}

// Grouped heads, ragged tiles, and more queries than keys: the first rows see none.
const AttentionShape kShapes[] = {
    {2, 4, 2, 5, 7, 3, 0.5f, false}, {2, 4, 2, 5, 7, 3, 0.5f, true}, {1, 2, 2, 9, 2, 3, 0.5f, true}};
const Tiling kTilings[] = {{2, 3}, {1, 1}, {8, 8}, {3, 8}};

std::string blamed(const AttentionShape& s, const Tiling& tiling, Parts changed, Scores scores = Scores::kNormal) {
  parts = std::move(changed);
  return first_off_trace(s, tiling, attention_data(s, scores));
}

}  // namespace

// What the trace runs, in the place of a student's.
void tiled_attention(const AttentionShape& s, const Tiling& tiling, TileLoader& loader) {
  for (std::int64_t batch = 0; batch < s.batch; ++batch)
    for (std::int64_t q_head = 0; q_head < s.q_heads; ++q_head)
      for (std::int64_t q_block = 0; q_block < loader.q_blocks(); ++q_block) {
        const std::int64_t rows_q = loader.load_Q(batch, q_head, q_block);
        one_block(s, tiling, loader, q_block, rows_q, batch, parts.kv_head(s, q_head));
      }
}

namespace {

TEST(Trace, BlamesNoRightKernel) {
  for (const AttentionShape& s : kShapes)
    for (const Tiling& tiling : kTilings)
      for (const Scores scores : {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow})
        EXPECT_EQ(blamed(s, tiling, {}, scores), "") << name(s) << ", tiles of " << tiling.block_q;
}

TEST(Trace, BlamesNotWhatIsRightUntilItShouldHaveBeenStored) {
  Parts changed;
  changed.stores = false;
  for (const AttentionShape& s : kShapes)
    for (const Tiling& tiling : kTilings) EXPECT_EQ(blamed(s, tiling, changed), "") << name(s);
}

TEST(Trace, BlamesTheHeadThatIsWrong) {
  Parts changed;
  changed.kv_head = [](const AttentionShape& s, std::int64_t q_head) { return q_head % s.kv_heads; };
  for (const Tiling& tiling : kTilings) {  // of heads 0 to 3, 1 and 2 read each other's
    const std::string found = blamed(kShapes[0], tiling, changed);
    EXPECT_TRUE(found.ends_with(", after key tile 0 of [batch 0, head 1, row 0]")) << found;
  }
}

TEST(Trace, BlamesTheTileThatIsWrong) {
  Parts no_rescale, no_mask;
  no_rescale.rescales = false, no_mask.masks = false;
  const std::string second = blamed(kShapes[0], {2, 3}, no_rescale, Scores::kGrowing),
                    masked = blamed(kShapes[1], {2, 3}, no_mask);
  EXPECT_TRUE(second.ends_with(", after key tile 1 of [batch 0, head 0, row 0]")) << second;
  EXPECT_TRUE(masked.ends_with(", after key tile 1 of [batch 0, head 0, row 0]")) << masked << ": keys 0 to 2 are seen";
}

TEST(Trace, SaysThatWhatIsStoredIsDivided) {
  Parts changed;
  changed.divides = false;
  const std::string found = blamed({1, 1, 1, 1, 2, 1, 1.0f, false}, {1, 1}, changed);
  EXPECT_TRUE(found.starts_with("\nfirst off the double-precision trace: o[0] / d is ")) << found;
  EXPECT_TRUE(found.ends_with(", after key tile 1 of [batch 0, head 0, row 0]")) << found;
}

}  // namespace
}  // namespace nanolm
