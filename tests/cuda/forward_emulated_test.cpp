// What only the emulator sees of a forward pass: the bytes of global memory that its kernels ask for, and whether the
// order of blocks, warps and lanes matters.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_forward.h"
#include "support/cuda_profile.h"

namespace nanolm::cuda {
namespace {

AttentionShape square(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return {1, 1, 1, seqlen_q, seqlen_k, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}

// Elements that a launch loads and stores in global memory, of 4 bytes each: float rungs only.
struct Traffic {
  std::int64_t loads, stores;
};
Traffic traffic(const Forward& f, const AttentionShape& s) {
  ForwardCall call(f, s, attention_data(s, Scores::kNormal));
  emulator::reset_counters();
  call.launch();
  call.result();
  const emulator::Counters counted = emulator::counters();
  return {counted.load_bytes / 4, counted.store_bytes / 4};
}
// How often that many queries go through K and V: the loads that 128 more keys cost, in rows of K and V.
std::int64_t reads_of_keys(const Forward& f, std::int64_t queries, std::int64_t head_dim) {
  const std::int64_t more =
      traffic(f, square(queries, 256, head_dim)).loads - traffic(f, square(queries, 128, head_dim)).loads;
  EXPECT_EQ(more % (2 * 128 * head_dim), 0) << "a tile of keys is loaded whole, K and V alike";
  return more / (2 * 128 * head_dim);
}
// How many queries share what is read of K and V: the most that read it once, of up to 256. 0 after a failure.
std::int64_t rows_a_tile(const Forward& f, std::int64_t head_dim) {
  const std::int64_t tiles = reads_of_keys(f, 128, head_dim);
  EXPECT_GE(tiles, 1) << "K and V are not read";
  EXPECT_LE(tiles, 8) << "fewer than 16 queries share a tile of keys";
  if (tiles < 1 || tiles > 8) return 0;
  std::int64_t rows = 128 / tiles, too_many = 256;
  if (reads_of_keys(f, rows + 1, head_dim) > 1) return rows;  // it divides 128, as most do
  if (reads_of_keys(f, too_many, head_dim) == 1) return too_many;
  while (rows + 1 < too_many) {
    const std::int64_t middle = (rows + too_many) / 2;
    (reads_of_keys(f, middle, head_dim) == 1 ? rows : too_many) = middle;
  }
  EXPECT_EQ(tiles, block_count(128, rows)) << rows << " queries read K and V once, 128 queries " << tiles << " times";
  return rows;
}

TEST(Load, ReadsAllOfQAndEachTileOfKAndVOnceForEachTileOfQueries) {
  for (const Forward& f : forwards()) {
    if (f.is_bf16) continue;
    SCOPED_TRACE(f.name());
    const std::int64_t loads = traffic(f, square(128, 128, 64)).loads;
    EXPECT_GE(loads, (128 + 2 * 128) * 64) << "of Q, K and V something is never read";
    if (f.has_score_matrix()) continue;
    const std::int64_t rows = rows_a_tile(f, 64);
    if (rows == 0) continue;
    for (const std::int64_t queries : {128, 256}) {
      const std::int64_t tiles = block_count(queries, rows);
      EXPECT_EQ(traffic(f, square(queries, 128, 64)).loads, (queries + tiles * 2 * 128) * 64)
          << "Q once, K and V once for each of " << tiles << " tiles of " << rows << " queries";
    }
  }
}

TEST(Load, WritesOAndLseOnce) {
  for (const Forward& f : forwards()) {
    if (f.is_bf16) continue;
    SCOPED_TRACE(f.name());
    const std::int64_t stores = traffic(f, square(128, 128, 64)).stores;
    if (f.has_score_matrix())
      EXPECT_GE(stores, 128 * 64 + 128 + 128 * 128) << "O, lse and the matrix of scores";
    else
      EXPECT_EQ(stores, 128 * 64 + 128) << "O and lse, and nothing in between";
  }
}

TEST(Skip, CausalReadsNoTileBehindTheDiagonal) {
  for (const Forward& f : forwards()) {
    if (f.is_bf16) continue;
    if (f.has_score_matrix()) {  // reads it all
      expect_matches_oracle(f, square(33, 33, 4, true), Scores::kNormal);
      continue;
    }
    const std::int64_t rows = rows_a_tile(f, 4);
    if (rows == 0) continue;
    for (const AttentionShape& s : {square(384, 384, 4, true), square(384, 256, 4, true), square(128, 384, 4, true)}) {
      SCOPED_TRACE(f.name() + ", " + name(s) + ", " + std::to_string(rows) + " rows a query tile");
      // The last row of a tile sees keys up to its own; a tile of at most 128 keys is read to its end.
      std::int64_t key_rows = 0;
      for (std::int64_t first = 0; first < s.seqlen_q; first += rows) {
        const std::int64_t end = std::min(first + rows, s.seqlen_q);
        const std::int64_t seen = std::max<std::int64_t>(0, end + s.seqlen_k - s.seqlen_q);
        key_rows += std::min(s.seqlen_k, 128 * block_count(seen, 128));
      }
      AttentionShape open = s;
      open.causal = false;
      const std::int64_t loads = traffic(f, s).loads, all_loads = traffic(f, open).loads;
      EXPECT_LE(loads, (s.seqlen_q + 2 * key_rows) * s.head_dim)
          << "elements are loaded, " << all_loads << " without the mask: tiles that no row sees are to be skipped";
      EXPECT_GT(loads, all_loads / 4) << "the tiles up to the diagonal are needed";
      expect_matches_oracle(f, s, Scores::kNormal);
    }
  }
}

TEST(Traffic, WorkedExampleOfTheNote) {
  for (const Forward& f : forwards()) {
    if (f.is_bf16) continue;
    SCOPED_TRACE(f.name());
    const Traffic counted = traffic(f, square(128, 128, 64));
    EXPECT_GE(counted.loads, 24576) << "Q, K and V";
    if (f.has_score_matrix()) {
      EXPECT_LE(counted.loads, 311296) << "elements are loaded, more than with tiles of 16 x 16";
      EXPECT_LE(counted.stores, 41088) << "elements are stored: S, weights, lse and O, each once";
    } else {
      EXPECT_EQ(counted.stores, 8320);
    }
  }
}

TEST(Traffic, AFewQueriesReadKAndVOnce) {
  for (const Forward& f : forwards()) {
    if (f.is_bf16) continue;
    SCOPED_TRACE(f.name());
    const AttentionShape s = square(16, 128, 20);
    const std::int64_t loads = traffic(f, s).loads;
    EXPECT_GE(loads, (16 + 2 * 128) * 20);
    EXPECT_TRUE(f.has_score_matrix() || loads <= (128 + 2 * 128) * 20) << loads << ", and 16 queries are one tile";
  }
}

// What the kernels of one forward pass ask of memory, where nothing is ragged.
std::vector<emulator::KernelProfile> profile_of(const Forward& f) {
  const AttentionShape s = square(128, 128, 64);
  ForwardCall call(f, s, f.rounded(attention_data(s, Scores::kNormal)));
  return profiled([&] { call.launch(); });
}

TEST(Sectors, AWarpLoadsNeighbours) {
  for (const Forward& f : forwards()) expect_neighbours(profile_of(f), 1.5);
}

TEST(Banks, SharedMemoryIsReadWithFewConflicts) {
  for (const Forward& f : forwards()) expect_few_conflicts(profile_of(f), 1.5);
}

TEST(Workspace, GrowsWithTheScoresOrNotAtAll) {
  for (const Forward& f : forwards()) {
    SCOPED_TRACE(f.name());
    const AttentionShape s = f.served({2, 4, 2, 33, 70, 8, 0.35f, false});
    const std::int64_t allowed = f.has_score_matrix() ? 4 * scores_size(s) + 255 : 4096;
    EXPECT_LE(static_cast<std::int64_t>(f.workspace_bytes(s)), allowed);
    expect_matches_oracle(f, s, Scores::kNormal);
  }
}

TEST(Order, OfBlocksWarpsAndLanesDoesNotChangeABit) {
  using emulator::Order;
  for (const Forward& f : forwards())
    for (const AttentionShape& s : {f.served(square(35, 70, 20, true)), f.served({2, 4, 2, 9, 5, 7, 0.4f, false})}) {
      SCOPED_TRACE(f.name() + ", " + name(s));
      const AttentionData data = f.rounded(attention_data(s, Scores::kGrowing));
      std::vector<Result> results;
      for (const Order order : {Order::kAscending, Order::kDescending, Order::kRandom, Order::kMixed}) {
        emulator::set_order(order);
        results.push_back(run(f, s, data));
        EXPECT_TRUE(same_bits(results.back().O, results[0].O)) << "O, order " << results.size() - 1;
        EXPECT_TRUE(same_bits(results.back().lse, results[0].lse)) << "lse, order " << results.size() - 1;
      }
      expect_close(f, s, data, results[0]);
    }
}

}  // namespace
}  // namespace nanolm::cuda
