#include <gtest/gtest.h>

#include <cmath>

#include "support/backward_problem.h"
#include "support/scratch.h"

namespace nanolm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const Scores kRegimes[] = {Scores::kNormal, Scores::kLarge, Scores::kGrowing, Scores::kLow};

// Tile steps on a 2 x 3 tile of dimension 2, small whole numbers: every result is exact.
const AttentionShape kTileShape{1, 1, 1, 2, 3, 2, 0.5f, false};
const BackwardTile kTile{0, 2, 0, 3};
const Floats kP{1, 0, 2, 3, 4, 5}, kRowsQ{1, -2, 3, 4}, kRowsK{1, 2, 0, -1, 2, 5};

TEST(AttentionBackward, GivenChecksRefuseWrongSizes) {
  const AttentionShape shape{2, 4, 2, 3, 5, 2, 1.0f, false};
  const Problem right(shape, Scores::kNormal);
  Gradients g(shape);
  Output delta(24), P(15);
  const auto refuses = [&](auto break_it, const Tiling& tiling = {}) {
    Problem p = right;
    break_it(p);
    EXPECT_THROW(attention_backward(p.shape, tiling, p.data.Q, p.data.K, p.data.V, p.O, p.dO, p.lse, g.dQ.span(),
                                    g.dK.span(), g.dV.span()),
                 std::invalid_argument);
  };
  refuses([](Problem& p) { p.shape.q_heads = 3; });
  refuses([](Problem& p) { p.data.K.pop_back(); });
  refuses([](Problem& p) { p.O.push_back(0); });
  refuses([](Problem& p) { p.lse.pop_back(); });
  refuses([](Problem&) {}, {0, 4});
  refuses([](Problem&) {}, {4, -1});
  EXPECT_THROW(output_delta(shape, right.O, Floats(7), delta.span()), std::invalid_argument);
  for (const BackwardTile& t : {BackwardTile{1, 3, 0, 5}, {0, 3, -1, 5}, {0, 3, 0, 4}, {0, 2, 0, 5}})
    EXPECT_THROW(tile_probabilities(shape, t, Floats(6), Floats(10), Floats(3), P.span()), std::invalid_argument);
  EXPECT_TRUE(g.dQ.untouched() && g.dK.untouched() && g.dV.untouched() && delta.untouched() && P.untouched());
}

TEST(AttentionBackward, DeltaIsTheRowSumOfOutputTimesGradient) {
  for (const AttentionShape& shape : attention_shapes(true)) {
    SCOPED_TRACE(name(shape));
    const Case this_case(shape);
    const Problem p(shape, Scores::kNormal);
    const oracle::Backward truth = p.truth();
    Output delta(lse_size(shape));
    output_delta(shape, p.O, p.dO, delta.span());
    EXPECT_TRUE(all_close(delta, truth.delta, oracle::gradient_tolerance(shape, truth) * truth.delta_magnitude,
                          {{"batch", shape.batch}, {"head", shape.q_heads}, {"row", shape.seqlen_q}}))
        << "delta" << derivation(shape, truth, truth.delta_magnitude);
    EXPECT_TRUE(delta.canaries_intact());
  }
}

TEST(AttentionBackward, ProbabilitiesOfEachTileAreThoseOfTheForwardPass) {
  const auto rows = [](const Floats& from, std::int64_t first, std::int64_t count, std::int64_t dim) {
    return Floats(from.begin() + first * dim, from.begin() + (first + count) * dim);
  };
  for (const Scores scores : kRegimes)
    for (const AttentionShape& shape : {AttentionShape{1, 1, 1, 17, 33, 20, 0.25f, true}, {1, 1, 1, 37, 18, 3, 0.5f}}) {
      SCOPED_TRACE(name(shape) + ", " + name(scores));
      const Problem p(shape, scores);
      const oracle::Forward truth = oracle::forward(shape, p.data.Q, p.data.K, p.data.V);
      for (BackwardTile t{0, 0, 0, 0}; t.first_q < shape.seqlen_q; t.first_q += 5)
        for (t.first_k = 0; t.first_k < shape.seqlen_k; t.first_k += 7) {
          t.rows_q = std::min<std::int64_t>(5, shape.seqlen_q - t.first_q);
          t.rows_k = std::min<std::int64_t>(7, shape.seqlen_k - t.first_k);
          Output P(t.rows_q * t.rows_k);
          tile_probabilities(shape, t, rows(p.data.Q, t.first_q, t.rows_q, shape.head_dim),
                             rows(p.data.K, t.first_k, t.rows_k, shape.head_dim), rows(p.lse, t.first_q, t.rows_q, 1),
                             P.span());
          std::vector<double> expected;
          for (std::int64_t i = t.first_q; i < t.first_q + t.rows_q; ++i)
            for (std::int64_t j = t.first_k; j < t.first_k + t.rows_k; ++j)
              expected.push_back(truth.P[static_cast<std::size_t>(i * shape.seqlen_k + j)]);
          ASSERT_TRUE(
              all_close(P, expected, oracle::lse_tolerance(shape, truth), {{"row", t.rows_q}, {"key", t.rows_k}}))
              << "P of the tile at row " << t.first_q << ", key " << t.first_k << derivation(shape, truth, false);
        }
    }
}

TEST(AttentionBackward, ProbabilitiesOfARowWithoutLogSumExpAreZero) {
  // The first row is empty, as after a forward pass that saw no key; the second shows that P is written.
  Output P(6);
  tile_probabilities(kTileShape, kTile, Floats{1, 0, 0, 0}, Floats{-kInf, 0, 3, 0, 500, 0}, Floats{-kInf, 0}, P.span());
  EXPECT_EQ(Floats(P.span().begin(), P.span().begin() + 3), Floats(3, 0.0f));
  EXPECT_EQ(P[4], 1.0f);
}

TEST(AttentionBackward, TileAddsToTheGradientOfV) {
  Floats dV{100, 200, 300, 400, 500, 600};
  add_tile_dV(kTileShape, kTile, kP, kRowsQ, dV);
  EXPECT_EQ(dV, (Floats{100 + 1 + 9, 200 - 2 + 12, 300 + 12, 400 + 16, 500 + 2 + 15, 600 - 4 + 20}));
}

TEST(AttentionBackward, TileGradientOfScoresSubtractsDelta) {
  Output dS(6);  // dP = {-3, 2, -8, 11, -4, 26}, delta = {10, -1}
  tile_dS(kTileShape, kTile, kP, kRowsQ, kRowsK, Floats{10, -1}, dS.span());
  EXPECT_EQ(floats(dS), (Floats{-13, 0, -36, 36, -12, 135}));
  EXPECT_TRUE(dS.canaries_intact());
}

TEST(AttentionBackward, TileAddsToTheGradientOfQ) {
  Floats dQ{100, 200, 300, 400};  // scale 0.5
  add_tile_dQ(kTileShape, kTile, kP, kRowsK, dQ);
  EXPECT_EQ(dQ, (Floats{100 + 2.5f, 200 + 6, 300 + 6.5f, 400 + 13.5f}));
}

TEST(AttentionBackward, TileAddsToTheGradientOfK) {
  Floats dK{100, 200, 300, 400, 500, 600};
  add_tile_dK(kTileShape, kTile, kP, kRowsQ, dK);
  EXPECT_EQ(dK, (Floats{100 + 5, 200 + 5, 300 + 6, 400 + 8, 500 + 8.5f, 600 + 8}));
}

TEST(AttentionBackward, PairsWithoutProbabilityAreNotRead) {
  // Row 0 of Q against key 1 has P = 0. Key 1 is NaN for one test, row 0 for the other.
  Floats K = kRowsK, Q = kRowsQ, dQ(4), dV(6), dK(6);
  K[2] = K[3] = Q[0] = Q[1] = kNaN;
  const Floats P{1, 0, 2, 3, 0, 5};
  Output dS(6);
  tile_dS(kTileShape, kTile, P, kRowsQ, K, Floats{10, -1}, dS.span());
  EXPECT_EQ(floats(dS), (Floats{-13, 0, -36, 36, 0, 135}));
  add_tile_dQ(kTileShape, kTile, P, K, dQ);
  EXPECT_EQ(dQ, (Floats{2.5f, 6, 6.5f, 15.5f}));
  add_tile_dV(kTileShape, kTile, kP, Q, dV);
  add_tile_dK(kTileShape, kTile, kP, Q, dK);
  EXPECT_EQ((Floats{dV[2], dV[3], dK[2], dK[3]}), (Floats{12, 16, 6, 8}));
  EXPECT_TRUE(std::isnan(dV[0]) && std::isnan(dK[5])) << "a NaN that has a probability must show";
}

TEST(AttentionBackward, MatchesTheOracle) {
  for (const Scores scores : kRegimes)
    for (const AttentionShape& shape : attention_shapes(false)) {
      SCOPED_TRACE(name(scores));
      expect_gradients(Problem(shape, scores), {16, 32});
    }
}

TEST(AttentionBackward, SumsOverTheQueryHeadsOfAGroup) {
  for (const Scores scores : kRegimes)
    for (const AttentionShape& shape : attention_shapes(true)) {
      SCOPED_TRACE(name(scores));
      expect_gradients(Problem(shape, scores), {8, 16});
    }
}

TEST(AttentionBackward, TileSizesDoNotMatter) {
  for (const bool causal : {false, true})
    for (const Tiling& tiling : {Tiling{1, 1}, {1, 64}, {64, 1}, {7, 5}, {16, 16}, {37, 53}, {1000, 4096}})
      expect_gradients(Problem({2, 4, 2, 37, 53, 12, 0.3f, causal}, Scores::kNormal), tiling);
}

TEST(AttentionBackward, WorkedExampleOfTheNote) {
  const float ln3 = std::log(3.0f);
  const Floats Q{1, 0}, K{0, 2 * ln3}, V{4, 8}, O{7, 6}, dO{1, 2}, lse{std::log(4.0f), std::log(2.0f)};
  Output dQ(2), dK(2), dV(2);
  attention_backward({1, 1, 1, 2, 2, 1, 0.5f, false}, {2, 1}, Q, K, V, O, dO, lse, dQ.span(), dK.span(), dV.span());
  EXPECT_TRUE(all_close(dQ, Floats{0.75f * ln3, 2 * ln3}, 1e-5));
  EXPECT_TRUE(all_close(dK, Floats{-0.375f, 0.375f}, 1e-5));
  EXPECT_TRUE(all_close(dV, Floats{1.25f, 1.75f}, 1e-5));
}

TEST(AttentionBackward, MatchesFiniteDifferences) {
  Problem p({1, 2, 1, 3, 4, 3, 0.6f, true}, Scores::kNormal);
  const Gradients g = backward(p, {2, 3});
  EXPECT_TRUE(all_close(g.dQ, central_differences(p, p.data.Q), 1e-5));
  EXPECT_TRUE(all_close(g.dK, central_differences(p, p.data.K), 1e-5));
  EXPECT_TRUE(all_close(g.dV, central_differences(p, p.data.V), 1e-5));
}

TEST(AttentionBackward, EmptyRowsGetZeroGradients) {
  // Causal, 9 queries and 4 keys: rows 0 to 4 see none, whatever dO holds there. Row 7 is empty because its lse says
  // so.
  Problem p({1, 1, 1, 9, 4, 2, 1.0f, true}, Scores::kNormal), same = p;
  p.lse[7] = -kInf;
  for (const std::size_t row : {0, 1, 2, 3, 4, 7})
    for (const std::size_t h : {2 * row, 2 * row + 1}) {
      p.dO[h] = row == 7 ? 3 : kNaN;
      p.O[h] = same.dO[h] = 0;
    }
  const Gradients g = backward(p, {4, 3}), expected = backward(same, {4, 3});
  EXPECT_TRUE(all_close(g.dQ, floats(expected.dQ), 1e-6));
  EXPECT_TRUE(all_close(g.dK, floats(expected.dK), 1e-6));
  EXPECT_TRUE(all_close(g.dV, floats(expected.dV), 1e-6));
  for (const std::size_t row : {0, 1, 2, 3, 4, 7}) EXPECT_EQ((Floats{g.dQ[2 * row], g.dQ[2 * row + 1]}), Floats(2, 0));
  EXPECT_NE(g.dQ[17], 0.0f);
}

TEST(AttentionBackward, NaNReachesOnlyRowsThatMeetIt) {
  // Causal, 9 x 9, two heads. NaN in query 5 of head 0 reaches dQ of that row and the keys it sees; NaN in key 6 of
  // head 0 reaches the queries that see it. The forward pass has spread it to their O and lse.
  const Problem clean({1, 2, 2, 9, 9, 1, 1.0f, true}, Scores::kNormal);
  const Gradients expected = backward(clean, {4, 4});
  Problem query = clean, key = clean;
  query.data.Q[5] = query.O[5] = query.lse[5] = kNaN;
  key.data.K[6] = key.data.V[6] = kNaN;
  for (const std::size_t i : {6, 7, 8}) key.O[i] = key.lse[i] = kNaN;
  const Gradients q = backward(query, {4, 4}), k = backward(key, {4, 4});
  for (std::size_t i = 0; i < 18; ++i) {
    SCOPED_TRACE("row " + std::to_string(i));
    const auto expect = [i](const Output& gradient, const Output& right, bool reached) {
      EXPECT_EQ(std::isnan(gradient[i]), reached);
      EXPECT_NEAR(reached ? 0 : gradient[i], reached ? 0 : right[i], 1e-6);
    };
    expect(q.dQ, expected.dQ, i == 5);
    expect(q.dK, expected.dK, i <= 5);
    expect(q.dV, expected.dV, i <= 5);
    expect(k.dQ, expected.dQ, i >= 6 && i <= 8);
  }
}

TEST(AttentionBackward, ScratchDoesNotGrowWithTheSquareOfTheLength) {
  const std::int64_t seqlen = 1024;
  const Problem p({1, 2, 1, seqlen, seqlen, 4, 0.5f, true}, Scores::kNormal);
  Gradients g(p.shape);
  const ScratchMeter meter;
  attention_backward(p.shape, {16, 16}, p.data.Q, p.data.K, p.data.V, p.O, p.dO, p.lse, g.dQ.span(), g.dK.span(),
                     g.dV.span());
  // Room for 24 floats a row, such as delta and a copy of each gradient; one score a byte would need 1024.
  EXPECT_LE(meter.peak_bytes(), 2 * seqlen * 24 * 4);
  EXPECT_LT(static_bytes(reinterpret_cast<const void*>(&attention_backward)), seqlen * seqlen / 4);
}

}  // namespace
}  // namespace nanolm
