#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_backward.h"
#include "support/cuda_ends.h"

namespace nanolm::cuda {
namespace {

// The last head, of one tile of queries and one of keys, is computed by the last block of each grid.
void expect_last_head(const Backward& b, const AttentionShape& s) {
  SCOPED_TRACE(b.name() + ", " + name(s));
  const emulator::BlockSample sample(16);
  AttentionShape ends = s, one = s;
  ends.batch = kEndHeads, one.batch = 1;
  Problem p(ends, Scores::kNormal);
  p.data.V = p.data.K, p.dO = p.data.Q;  // and lie in one place: the emulator's addresses are limited
  const oracle::Forward truth = oracle::forward(ends, p.data.Q, p.data.K, p.data.V);
  p.O.assign(truth.O.begin(), truth.O.end());
  EndsOfATensor Q(q_size(s)), K(kv_size(s)), O(q_size(s)), lse(lse_size(s));
  EndsOfATensor dQ(q_size(s)), dK(kv_size(s)), dV(kv_size(s));
  DeviceBuffer<unsigned char> workspace(static_cast<std::int64_t>(b.workspace_bytes(s)));
  Q.put(p.data.Q), K.put(p.data.K), O.put(p.O), lse.put(p.lse);
  BackwardArgs<float> args;
  args.shape = s, args.Q = Q.data(), args.K = K.data(), args.V = K.data(), args.O = O.data(), args.dO = Q.data();
  args.lse = lse.data(), args.dQ = dQ.data(), args.dK = dK.data(), args.dV = dV.data();
  args.workspace = workspace.data();
  named(b, [&] {
    b.rung->backward(args);
    CUDA_CHECK(cudaDeviceSynchronize());
  });
  Problem last(one, Scores::kNormal);
  last.data = {of_last_head(p.data.Q), of_last_head(p.data.K), of_last_head(p.data.V)};
  last.O = of_last_head(p.O), last.dO = of_last_head(p.dO), last.lse = of_last_head(p.lse);
  expect_close(last, {dQ.last(q_size(one)), dK.last(kv_size(one)), dV.last(kv_size(one))});
}

TEST(Offsets, OfMoreThan2To31ElementsOfQueries) {
  for (const Backward& b : backwards()) expect_last_head(b, {(1 << 20) + 1, 1, 1, 16, 1, 128, 0.1f, false});
}

TEST(Offsets, OfMoreThan2To31ElementsOfKeys) {
  for (const Backward& b : backwards()) expect_last_head(b, {(1 << 20) + 1, 1, 1, 1, 16, 128, 0.1f, false});
}

}  // namespace
}  // namespace nanolm::cuda
