// What failures say. tests/meta/messages.py runs the tests that are disabled here, which fail on purpose, and reads it.
#include <gtest/gtest.h>

#include "support/all_close.h"
#include "support/cases.h"
#include "support/oracle.h"

namespace nanolm {
namespace {

// all_close of zeros with some elements of 5 x 2 wrong, tiles of 2 rows.
std::string said(const std::vector<std::size_t>& wrong, std::int64_t tile = 2) {
  std::vector<float> actual(10), expected(10);
  for (const std::size_t i : wrong) actual[i] = 1;
  return all_close(actual, expected, 0.5, {{"row", 5, tile}, {"column", 2}}).message();
}

TEST(AllClose, NamesTheLastPartialTile) {
  EXPECT_TRUE(said({8, 9}).ends_with("\nall of them lie in row 4 (only the last, partial tile)")) << said({8, 9});
  EXPECT_TRUE(said({6, 9}, 3).ends_with("\nall of them lie in from row 3 on (only the last, partial tile)"));
  EXPECT_TRUE(said({6}, 3).ends_with("\nall of them lie in row 3 (only the last, partial tile), column 0"));
  EXPECT_TRUE(said({6, 9}).ends_with("\nall of them lie in from row 3 on")) << "more than the last tile";
  EXPECT_TRUE(said({8, 9}, 5).ends_with("\nall of them lie in row 4")) << "no tile is partial";
  EXPECT_TRUE(said({8, 9}, 8).ends_with("\nall of them lie in row 4")) << "the only tile is no tail";
  EXPECT_TRUE(said({8, 9}, 0).ends_with("\nall of them lie in row 4")) << "tiles not known";
}

TEST(Cases, SayTheRarestTraitThatAllFailuresShare) {
  const CaseResult wrong{true, {true, true, false, false}}, right{false, {false, false, false, false}},
      causal{false, {true, false, false, false}};
  EXPECT_EQ(only_failing({wrong, causal, right}), "only cases of grouped heads fail: 1 of 1");
  EXPECT_EQ(only_failing({wrong, {true, {true, false, false, false}}, right}), "only causal cases fail: 2 of 2");
  EXPECT_EQ(only_failing({wrong, wrong}), "") << "no case without it";
  EXPECT_EQ(only_failing({wrong, {true, {}}, causal}), "") << "shared by none";
  EXPECT_EQ(only_failing({right, causal}), "") << "nothing fails";
  EXPECT_EQ(only_failing({}), "");
}

TEST(Derivation, HasTheNumbersOfTheTolerance) {
  oracle::Backward truth;
  truth.score_magnitude = 3;
  const AttentionShape s{1, 4, 2, 5, 7, 9, 1.0f, false};  // 7 + 2 * 5 + 9 terms
  EXPECT_EQ(derivation(s, truth, 2.5),
            "; tolerance = 2^-23 ((4 + sqrt(9)) 3 + 2 sqrt(26) + 8) 2.5, derived in tests/support/oracle.h");
  EXPECT_DOUBLE_EQ(gradient_tolerance(s, truth), 0x1p-23 * (7 * 3 + 2 * std::sqrt(26.0) + 8));
}

TEST(Example, DISABLED_CausalFails) {
  for (const std::int64_t seqlen : {4, 6})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE("seqlen " + std::to_string(seqlen));
      const Case this_case({1, 2, 2, seqlen, seqlen, 1, 1.0f, causal}, {4, 4});
      EXPECT_TRUE(all_close(std::vector<float>{causal ? 1.0f : 0.0f}, std::vector<float>{0}, 0.5));
    }
}

TEST(Example, DISABLED_TailFails) {
  for (const std::int64_t seqlen : {4, 6}) {
    const Case this_case({1, 2, 2, seqlen, seqlen, 1, 1.0f, false}, {1, 4});
    EXPECT_EQ(seqlen, 4);
  }
}

}  // namespace
}  // namespace nanolm
