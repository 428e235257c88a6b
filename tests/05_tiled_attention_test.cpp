#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "nanolm/tiled_attention.h"
#include "support/all_close.h"
#include "support/cases.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"
#include "support/scratch.h"
#include "support/trace.h"

namespace nanolm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};

struct Result {
  Output O, lse;
  TileLoader::Traffic traffic;
};
Result run(const AttentionShape& s, const Tiling& tiling, const AttentionData& data) {
  Result r{Output(q_size(s)), Output(lse_size(s)), {}};
  TileLoader loader(s, tiling, data.Q, data.K, data.V, r.O.span(), r.lse.span());
  tiled_attention(s, tiling, loader);
  r.traffic = loader.traffic();
  return r;
}

void expect_matches_oracle(const AttentionShape& s, const Tiling& tiling) {
  for (const Scores regime : kRegimes) {
    SCOPED_TRACE(name(s) + ", " + name(regime) + ", tiles of " + std::to_string(tiling.block_q) + " x " +
                 std::to_string(tiling.block_k));
    const Case this_case(s, tiling);
    const AttentionData data = attention_data(s, regime);
    const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
    const Result r = run(s, tiling, data);
    const std::vector<Dim> rows{{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q, tiling.block_q}};
    std::vector<Dim> elements = rows;
    elements.push_back({"column", s.head_dim});
    EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(s, truth), elements))
        << "O" << derivation(s, truth, true) << (testing::Test::HasFailure() ? "" : first_off_trace(s, tiling, data));
    EXPECT_TRUE(all_close(r.lse, truth.lse, lse_tolerance(s, truth), rows)) << "lse" << derivation(s, truth, false);
    EXPECT_TRUE(r.O.canaries_intact() && r.lse.canaries_intact());
  }
}

AttentionShape square(std::int64_t seqlen, std::int64_t head_dim, bool causal) {
  return {1, 1, 1, seqlen, seqlen, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}

TEST(TileLoader, GivenChecksRefuseBadInputAndWriteNothing) {
  const AttentionShape good{1, 4, 2, 3, 5, 2, 1.0f, false};
  const std::vector<float> Q(24), K(20);
  Output O(24), lse(12), short_lse(11);
  const auto refused = [&](AttentionShape s, Tiling tiling, Output& l) {
    EXPECT_THROW(tiled_attention(s, tiling, Q, K, K, O.span(), l.span()), std::invalid_argument);
  };
  AttentionShape indivisible = good, longer = good, huge = good;
  indivisible.kv_heads = 3, longer.seqlen_k = 6, huge.seqlen_k = std::int64_t{1} << 62;
  refused(good, {0, 1}, lse);
  refused(good, {1, 0}, lse);
  refused(good, {1, -4}, lse);
  refused(good, {1, 1}, short_lse);
  refused(indivisible, {1, 1}, lse);
  refused(longer, {1, 1}, lse);
  refused(huge, {1, 1}, lse);
  EXPECT_THROW(visible_k_blocks(good, {2, 2}, 2), std::invalid_argument);
  EXPECT_THROW(tile_scores({2, 2, 2}, 1, Q, std::span(K).first(3), O.span()), std::invalid_argument);
  EXPECT_THROW(flash1_traffic(4096, 64, 0), std::invalid_argument);
  EXPECT_THROW(flash2_traffic(4096, -64, 128), std::invalid_argument);
  EXPECT_TRUE(O.untouched() && lse.untouched() && short_lse.untouched());
}

TEST(TileLoader, GivenCopiesTilesCountsBytesAndMarksMissingRows) {
  const AttentionShape s{1, 2, 1, 3, 5, 2, 1.0f, false};
  const std::vector<float> Q{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, K{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, V(10, 1.0f);
  Output O(12), lse(6);
  TileLoader loader(s, {2, 4}, Q, K, V, O.span(), lse.span());
  EXPECT_EQ(loader.q_blocks(), 2);
  EXPECT_EQ(loader.k_blocks(), 2);
  EXPECT_EQ(loader.load_Q(0, 1, 1), 1);
  EXPECT_EQ(loader.sram().Q[0], 10.0f);
  EXPECT_TRUE(std::isnan(loader.sram().Q[2]));
  EXPECT_EQ(loader.load_K(0, 0, 0), 4);
  EXPECT_EQ(loader.load_V(0, 0, 1), 1);
  EXPECT_EQ(loader.traffic().bytes(), (1 + 4 + 1) * 2 * 4);
  loader.sram().O[0] = 42;
  loader.store_O();
  EXPECT_EQ(O[10], 42.0f);
  EXPECT_TRUE(std::isnan(O[9]) && O.canaries_intact());
  EXPECT_THROW(loader.load_K(0, 1, 0), std::out_of_range);
  EXPECT_THROW(loader.load_Q(0, 0, 2), std::out_of_range);
}

TEST(TileScores, AreScaledDotProducts) {
  const std::vector<float> Q{1, 0, 0, 1}, K{1, 2, 3, 4, 5, 6};
  Output S(6);
  tile_scores({2, 3, 2}, 0.5f, Q, K, S.span());
  EXPECT_TRUE(all_close(S, std::vector<float>{0.5f, 1.5f, 2.5f, 1, 2, 3}, 0));
}

TEST(TileScores, LeaveRowsBehindTheEndAlone) {
  const std::vector<float> Q{1, 2, kNaN, kNaN}, K{3, 4, kNaN, kNaN};
  Output S(4);
  tile_scores({1, 1, 2}, 1.0f, Q, K, S.span());
  EXPECT_EQ(S[0], 11.0f);
  EXPECT_TRUE(std::isnan(S[1]) && std::isnan(S[2]) && std::isnan(S[3]));
}

TEST(UpdateTile, KeepsMaximumSumAndOutputOfEachRow) {
  // Row 0 has scores 1, 3, 2: weights e^-2, 1, e^-1. Row 1 has 2, -inf, 4: weights e^-2, 0, 1. V is 3 keys x 2 columns.
  std::vector<float> m(2, -kInf), d(2), O(4);
  const std::vector<float> S{1, 3, 2, 2, -kInf, 4}, V{1, 7, 10, 5, 100, 20};
  update_tile({2, 3, 2}, S, V, m, d, O);
  const double e1 = std::exp(-1.0), e2 = std::exp(-2.0);
  const std::vector<double> expected{e2 + 10 + 100 * e1, 7 * e2 + 5 + 20 * e1, e2 + 100, 7 * e2 + 20};
  EXPECT_EQ(m, (std::vector<float>{3, 4}));
  EXPECT_TRUE(all_close(d, std::vector<double>{e2 + 1 + e1, e2 + 1}, 1e-6));
  EXPECT_TRUE(all_close(O, expected, 1e-4, {{"row", 2}, {"column", 2}})) << "V is [3 keys, 2 columns], row after row";
}

TEST(UpdateTile, RescalesWhatWasSummedWhenTheMaximumGrows) {
  std::vector<float> m{1}, d{2}, O{6};
  update_tile({1, 1, 1}, std::vector<float>{3}, std::vector<float>{5}, m, d, O);
  EXPECT_EQ(m[0], 3.0f);
  EXPECT_NEAR(d[0], 2 * std::exp(-2.0) + 1, 1e-6);
  EXPECT_NEAR(O[0], 6 * std::exp(-2.0) + 5, 1e-5);
}

TEST(UpdateTile, MaskedTileChangesNothingAndItsValuesAreNotRead) {
  std::vector<float> m{-kInf, 4}, d{0, 2}, O{0, 6};
  update_tile({2, 1, 1}, std::vector<float>{-kInf, -kInf}, std::vector<float>{kNaN}, m, d, O);
  EXPECT_EQ(m, (std::vector<float>{-kInf, 4}));
  EXPECT_EQ(d, (std::vector<float>{0, 2}));
  EXPECT_EQ(O, (std::vector<float>{0, 6}));
}

TEST(FinishTile, DividesBySumAndWritesLse) {
  std::vector<float> O{6, 8, 0, 0}, lse(2, kNaN);
  finish_tile({2, 0, 2}, std::vector<float>{5, -kInf}, std::vector<float>{2, 0}, O, lse);
  EXPECT_EQ(O, (std::vector<float>{3, 4, 0, 0}));
  EXPECT_NEAR(lse[0], 5 + std::log(2.0), 1e-6);
  EXPECT_EQ(lse[1], -kInf) << "a row that saw no key";
}

TEST(MaskTile, HidesKeysBehindTheDiagonalAlignedBottomRight) {
  // 5 queries, 7 keys: query i sees keys up to i + 2. This tile holds queries 2, 3 and keys 3 to 6.
  const AttentionShape s{1, 1, 1, 5, 7, 1, 1.0f, true};
  std::vector<float> S(8, 1.0f);
  mask_tile(s, {2, 4, 1}, 2, 3, S);
  EXPECT_EQ(S, (std::vector<float>{1, 1, -kInf, -kInf, 1, 1, 1, -kInf})) << "queries 2, 3 and keys 3 to 6 of 5 x 7";
  AttentionShape open = s;
  open.causal = false;
  std::vector<float> all(8, 1.0f);
  mask_tile(open, {2, 4, 1}, 2, 3, all);
  EXPECT_EQ(all, std::vector<float>(8, 1.0f)) << "no mask without the causal flag";
}

TEST(MaskTile, ReplacesNaN) {
  std::vector<float> S{1, kNaN};
  mask_tile({1, 1, 1, 2, 2, 1, 1.0f, true}, {1, 2, 1}, 0, 0, S);
  EXPECT_EQ(S, (std::vector<float>{1, -kInf})) << "query 0 and keys 0, 1 of 2 x 2; the score of key 1 was NaN";
}

TEST(VisibleKBlocks, EndAtTheDiagonalOfTheLastRow) {
  const AttentionShape s = square(10, 1, true);
  EXPECT_EQ(visible_k_blocks(s, {4, 4}, 0), 1);
  EXPECT_EQ(visible_k_blocks(s, {4, 4}, 2), 3) << "the last block has 2 rows";
  EXPECT_EQ(visible_k_blocks(s, {4, 3}, 0), 2) << "row 3 sees key 3, the first of block 1";
  EXPECT_EQ(visible_k_blocks(s, {3, 4}, 1), 2) << "row 5 sees key 5";
  EXPECT_EQ(visible_k_blocks(square(10, 1, false), {4, 4}, 0), 3);
  const AttentionShape more_keys{1, 1, 1, 2, 9, 1, 1.0f, true}, fewer_keys{1, 1, 1, 9, 2, 1, 1.0f, true};
  EXPECT_EQ(visible_k_blocks(more_keys, {1, 4}, 0), 2);
  EXPECT_EQ(visible_k_blocks(fewer_keys, {4, 4}, 0), 0) << "rows 0 to 3 see no key";
  EXPECT_EQ(visible_k_blocks(fewer_keys, {4, 4}, 2), 1);
}

TEST(TiledAttention, MatchesOracleOnWholeTiles) {
  for (const std::int64_t blocks : {1, 2, 5}) {
    AttentionShape s{2, 3, 3, 16, 8 * blocks, 4, 0.5f, false};
    expect_matches_oracle(s, {8, 8});
  }
}

TEST(TiledAttention, RaggedTailsAndAnyBlockSize) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/false))
    if (!s.causal)
      for (const Tiling tiling : {Tiling{16, 32}, {64, 64}, {1, 1}, {5, 7}, {1000, 3}, {3, 1000}})
        expect_matches_oracle(s, tiling);
}

TEST(TiledAttention, Causal) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/false))
    if (s.causal)
      for (const Tiling tiling : {Tiling{16, 32}, {64, 64}, {1, 1}, {5, 7}, {1000, 3}, {3, 1000}})
        expect_matches_oracle(s, tiling);
}

TEST(TiledAttention, GroupedHeadsReadTheirOwnKvHead) {
  for (const AttentionShape& s : attention_shapes(/*grouped=*/true)) expect_matches_oracle(s, {16, 32});
}

TEST(TiledAttention, ZeroKeysGiveEqualWeightsWhateverThePadding) {
  // Q = K = 0: every output is the mean of V, here 1. A padded key that counts gives less.
  for (std::int64_t seqlen = 1; seqlen <= 17; ++seqlen) {
    AttentionShape s = square(seqlen, 3, false);
    const auto n = static_cast<std::size_t>(q_size(s));
    const Result r = run(s, {4, 8}, {std::vector<float>(n), std::vector<float>(n), std::vector<float>(n, 1.0f)});
    EXPECT_TRUE(all_close(r.O, std::vector<float>(n, 1.0f), 1e-6)) << "seqlen " << seqlen;
    EXPECT_TRUE(all_close(r.lse, std::vector<double>(static_cast<std::size_t>(seqlen), std::log(seqlen)), 1e-6));
  }
}

TEST(TiledAttention, NaNInARowOfQStaysInThatRow) {
  const AttentionShape s{1, 2, 1, 9, 9, 4, 0.5f, true};
  AttentionData data = attention_data(s, Scores::kNormal);
  const Result clean = run(s, {4, 4}, data);
  data.Q[4 * 11] = kNaN;  // head 1, row 2
  const Result r = run(s, {4, 4}, data);
  for (std::size_t i = 0; i < r.O.size(); ++i)
    if (i / 4 == 11)
      EXPECT_TRUE(std::isnan(r.O[i])) << "row 2 of Q of head 1 is NaN: its row of O must be NaN, not " << r.O[i];
    else
      EXPECT_EQ(r.O[i], clean.O[i]) << "row 2 of Q of head 1 is NaN: row " << i / 4 % 9 << " of head " << i / 4 / 9
                                    << " must not change";
}

TEST(TiledAttention, NaNInAMaskedKeyIsNotSeen) {
  const AttentionShape s = square(9, 4, true);
  AttentionData data = attention_data(s, Scores::kNormal);
  const Result clean = run(s, {4, 4}, data);
  data.K[4 * 6] = data.V[4 * 6] = kNaN;
  const Result r = run(s, {4, 4}, data);
  for (std::size_t i = 0; i < r.O.size(); ++i)
    if (i / 4 >= 6)
      EXPECT_TRUE(std::isnan(r.O[i])) << "key 6 is NaN: row " << i / 4 << " sees it and must be NaN, not " << r.O[i];
    else
      EXPECT_EQ(r.O[i], clean.O[i]) << "key 6 is NaN: row " << i / 4 << " must not change";
}

TEST(TiledAttention, SkipsTilesAboveTheDiagonal) {
  const AttentionShape s = square(4096, 1, true);
  const TileLoader::Traffic traffic = run(s, {128, 128}, attention_data(s, Scores::kNormal)).traffic;
  EXPECT_EQ(traffic.K_tiles, 528) << "of 32 x 32 tiles, 32 * 33 / 2 hold a key that a query sees";
  EXPECT_EQ(traffic.V_tiles, 528);
  EXPECT_EQ(traffic.Q_tiles, 32);
}

TEST(TiledAttention, LoadsEachVisibleTileOnce) {
  for (const bool causal : {false, true}) {
    const AttentionShape s{2, 4, 2, 13, 22, 3, 1.0f, causal};
    const TileLoader::Traffic traffic = run(s, {4, 5}, attention_data(s, Scores::kNormal)).traffic;
    // Causal, the last rows 3, 7, 11, 12 of the query blocks see 13, 17, 21 and 22 keys: 3 + 4 + 5 + 5 tiles of 5.
    EXPECT_EQ(traffic.K_tiles, 2 * 4 * (causal ? 17 : 20));
    EXPECT_EQ(traffic.V_tiles, traffic.K_tiles);
    EXPECT_EQ(traffic.Q_tiles, 2 * 4 * 4);
    EXPECT_EQ(traffic.O_tiles, 2 * 4 * 4);
    EXPECT_EQ(traffic.O_bytes, 4 * q_size(s));
    EXPECT_EQ(traffic.lse_bytes, 4 * lse_size(s));
  }
}

TEST(TiledAttention, ScratchDoesNotGrowWithTheLength) {
  const auto peak = [](std::int64_t seqlen) {
    const AttentionShape s = square(seqlen, 2, false);
    const AttentionData data = attention_data(s, Scores::kNormal);
    Output O(q_size(s)), lse(lse_size(s));
    TileLoader loader(s, {32, 32}, data.Q, data.K, data.V, O.span(), lse.span());
    ScratchMeter meter;
    tiled_attention(s, {32, 32}, loader);
    return meter.peak_bytes();
  };
  EXPECT_LE(peak(256), 65536) << "256 x 256 scores are 262144 bytes";
  EXPECT_LE(peak(2048), 65536) << "2048 x 2048 scores are 16 MiB";
  using Step = void (*)(const AttentionShape&, const Tiling&, TileLoader&);
  EXPECT_LE(static_bytes(reinterpret_cast<const void*>(static_cast<Step>(&tiled_attention))), 262144)
      << "static storage of the lesson";
}

TEST(Traffic, IdealMovesEachTensorOnce) { EXPECT_EQ(ideal_traffic(4096, 128), 4 * 4096.0 * 128); }

TEST(Traffic, Flash1ReadsQAndOForEachBlockOfKeys) {
  EXPECT_TRUE(is_near(flash1_traffic(4096, 64, 51200), 16630415.36));
  EXPECT_TRUE(is_near((4 * 4096.0 * 128 + 4 * 4096.0 * 4096) / flash1_traffic(4096, 128, 51200), 1.0570, 1e-4));
}

TEST(Traffic, Flash1LosesOnceTheHeadIsTooWide) {
  EXPECT_TRUE(flash1_wins(64, 51200));
  EXPECT_TRUE(flash1_wins(128, 51200)) << "3 * 128 * 128 = 49152";
  EXPECT_FALSE(flash1_wins(128, 49152)) << "equal is no win";
  EXPECT_FALSE(flash1_wins(256, 51200));
}

TEST(Traffic, Flash2IntensityFollowsTheQueryBlock) {
  const double flop = 4.0 * 4096 * 4096 * 128;
  EXPECT_TRUE(is_near(flop / (2 * flash2_traffic(4096, 128, 128)), 124.1212121212));
  EXPECT_TRUE(is_near(flop / (2 * flash2_traffic(4096, 128, 192)), 178.0869565217)) << "22 blocks, the last is short";
}

TEST(Traffic, Flash2EqualsTheBytesCounted) {
  for (const std::int64_t seqlen : {64, 100, 127}) {
    const AttentionShape s = square(seqlen, 6, false);
    const TileLoader::Traffic t = run(s, {16, 24}, attention_data(s, Scores::kNormal)).traffic;
    EXPECT_EQ(static_cast<double>(t.bytes() - t.lse_bytes), 4 * flash2_traffic(static_cast<double>(seqlen), 6, 16));
  }
}

TEST(Traffic, Flash1EqualsTheBytesOfItsLoopOrder) {
  // Tiles moved as FlashAttention-1 does, keys outside; 16 rows of keys fit when the chip holds 4 * 8 * 16 elements.
  const AttentionShape s = square(64, 8, false);
  const AttentionData data = attention_data(s, Scores::kNormal);
  Output O(q_size(s)), lse(lse_size(s));
  TileLoader loader(s, {32, 16}, data.Q, data.K, data.V, O.span(), lse.span());
  std::int64_t O_read_bytes = 0;
  for (std::int64_t k_block = 0; k_block < loader.k_blocks(); ++k_block) {
    loader.load_K(0, 0, k_block);
    loader.load_V(0, 0, k_block);
    for (std::int64_t q_block = 0; q_block < loader.q_blocks(); ++q_block) {
      O_read_bytes += loader.load_Q(0, 0, q_block) * s.head_dim * 4;
      loader.store_O();
    }
  }
  EXPECT_EQ(static_cast<double>(loader.traffic().bytes() + O_read_bytes), 4 * flash1_traffic(64, 8, 4 * 8 * 16));
}

TEST(TiledAttention, WorkedExampleOfTheNote) {
  // One query against four keys in two tiles, scale 1: scores 1, 3 | 5, 2; values 10, 20 | 30, 40.
  const AttentionShape s{1, 1, 1, 1, 4, 1, 1.0f, false};
  const AttentionData data{{1}, {1, 3, 5, 2}, {10, 20, 30, 40}};
  Output O(1), lse(1);
  TileLoader loader(s, {1, 2}, data.Q, data.K, data.V, O.span(), lse.span());
  std::vector<float> trace;
  loader.set_trace([&](const TileLoader::Visit& v) {
    if (v.k_block == 0) trace = {v.row_max[0], v.row_sum[0], v.O[0]};
  });
  tiled_attention(s, {1, 2}, loader);
  EXPECT_TRUE(all_close(trace, std::vector<double>{3, 1.13534, 21.35335}, 5e-5)) << "m, d and o after the first tile";
  EXPECT_NEAR(lse[0], 5.18518, 5e-5);
  EXPECT_NEAR(O[0], 28.98475, 5e-5);
}

}  // namespace
}  // namespace nanolm
