// What only the emulator sees of a backward pass: bytes, sectors, bank conflicts, and whether the order of threads
// matters.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_backward.h"
#include "support/cuda_profile.h"

namespace nanolm::cuda {
namespace {

AttentionShape square(std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  return {1, 1, 1, seqlen_q, seqlen_k, head_dim, 1.0f / std::sqrt(static_cast<float>(head_dim)), causal};
}
std::vector<emulator::KernelProfile> profile_of(const Backward& b, const AttentionShape& s) {
  BackwardCall call(b, Problem(s, Scores::kNormal));
  return profiled([&] { call.launch(); });
}
// Elements of an array that all kernels asked for.
std::int64_t loaded(const std::vector<emulator::KernelProfile>& kernels, const std::string& name) {
  std::int64_t bytes = 0;
  for (const auto& kernel : kernels)
    for (const auto& array : kernel.global)
      if (array.name == name) bytes += array.loads.bytes;
  return bytes / 4;
}
std::int64_t stored(const std::vector<emulator::KernelProfile>& kernels) {
  std::int64_t bytes = 0;
  for (const auto& kernel : kernels)
    for (const auto& array : kernel.global) bytes += array.stores.bytes;
  return bytes / 4;
}

TEST(Traffic, GradientsAreWrittenOnceAndNothingOfSizeSquared) {
  for (const Backward& b : backwards()) {
    const AttentionShape s = square(256, 384, 64);
    EXPECT_EQ(stored(profile_of(b, s)), q_size(s) + 2 * kv_size(s) + lse_size(s))
        << b.name() << ": dQ, dK, dV and delta, each once";
  }
}

TEST(Traffic, WorkedExampleOfTheNote) {
  for (const Backward& b : backwards()) {
    // 256 x 256 at head_dim 64: a tile of 128 rows is owned, so that all rows of the others are read twice.
    const auto kernels = profile_of(b, square(256, 256, 64));
    const std::int64_t all = 256 * 64;
    EXPECT_EQ(loaded(kernels, "O"), all) << b.name() << ": O, for delta alone";
    EXPECT_LE(loaded(kernels, "K"), 3 * all) << b.name() << ": K once as own rows and twice as visited rows";
    EXPECT_LE(loaded(kernels, "V"), 3 * all) << b.name();
    EXPECT_LE(loaded(kernels, "Q"), 3 * all) << b.name();
    EXPECT_LE(loaded(kernels, "dO"), 4 * all) << b.name() << ": once more for delta";
  }
}

TEST(Skip, CausalReadsNoTileThatNobodySees) {
  for (const Backward& b : backwards())
    for (const AttentionShape& s : {square(512, 512, 4, true), square(512, 256, 4, true), square(256, 512, 4, true)}) {
      SCOPED_TRACE(b.name() + ", " + name(s));
      AttentionShape open = s;
      open.causal = false;
      const auto kernels = profile_of(b, s), all = profile_of(b, open);
      // Of a tile of 128 keys the queries from the first that sees one are read, of 128 queries the keys up to the last
      // that one sees, both to the end of a tile of at most 64; and each row once where it is owned.
      std::int64_t query_rows = s.seqlen_q, key_rows = s.seqlen_k;
      for (std::int64_t first = 0; first < s.seqlen_k; first += 128)
        query_rows += std::min(s.seqlen_q, s.seqlen_q - std::max<std::int64_t>(0, first - s.seqlen_k + s.seqlen_q));
      for (std::int64_t first = 0; first < s.seqlen_q; first += 128) {
        const std::int64_t seen = std::max<std::int64_t>(0, first + 128 + s.seqlen_k - s.seqlen_q);
        key_rows += std::min(s.seqlen_k, 64 * block_count(seen, 64));
      }
      EXPECT_LE(loaded(kernels, "Q"), query_rows * s.head_dim)
          << "elements of Q, " << loaded(all, "Q")
          << " without the mask: queries that see no key of a tile are skipped";
      EXPECT_LE(loaded(kernels, "K"), key_rows * s.head_dim)
          << "elements of K, " << loaded(all, "K")
          << " without the mask: keys that no query of a tile sees are skipped";
      expect_matches_oracle(b, s, Scores::kNormal);
    }
}

TEST(Sectors, AWarpLoadsNeighbours) {
  for (const Backward& b : backwards())
    for (const std::int64_t head_dim : {64, 128}) expect_neighbours(profile_of(b, square(128, 128, head_dim)), 1.5);
}

TEST(Banks, SharedMemoryIsReadWithFewConflicts) {
  for (const Backward& b : backwards())
    for (const std::int64_t head_dim : {32, 64, 128})
      expect_few_conflicts(profile_of(b, square(128, 128, head_dim)), 1.1);
}

TEST(Workspace, HoldsOneFloatARow) {
  for (const Backward& b : backwards()) {
    const AttentionShape s{2, 4, 2, 33, 70, 8, 0.35f, false};
    EXPECT_LE(b.workspace_bytes(s), static_cast<std::size_t>(4 * lse_size(s) + 255)) << b.name();
    expect_matches_oracle(b, s, Scores::kNormal);
  }
}

TEST(Order, OfBlocksWarpsAndLanesDoesNotChangeABit) {
  using emulator::Order;
  for (const Backward& b : backwards())
    for (const AttentionShape& s : {square(35, 140, 20, true), {2, 4, 2, 9, 5, 7, 0.4f, false}}) {
      SCOPED_TRACE(b.name() + ", " + name(s));
      const Problem p(s, Scores::kGrowing);
      std::vector<Gradients> results;
      for (const Order order : {Order::kAscending, Order::kDescending, Order::kRandom, Order::kMixed}) {
        emulator::set_order(order);
        results.push_back(run(b, p));
        EXPECT_TRUE(same_bits(results.back().dV, results[0].dV)) << "dV, order " << results.size() - 1;
        EXPECT_TRUE(same_bits(results.back().dK, results[0].dK)) << "dK, order " << results.size() - 1;
        EXPECT_TRUE(same_bits(results.back().dQ, results[0].dQ)) << "dQ, order " << results.size() - 1;
      }
      expect_close(p, results[0]);
    }
}

}  // namespace
}  // namespace nanolm::cuda
