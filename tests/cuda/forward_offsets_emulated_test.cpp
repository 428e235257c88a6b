#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_ends.h"
#include "support/cuda_forward.h"

namespace nanolm::cuda {
namespace {

// The last head, of at most 16 rows, is computed by at most 16 blocks at the grid's end: a block a row, or tiles.
void expect_last_head(const Forward& f, const AttentionShape& s) {
  SCOPED_TRACE(f.name() + ", " + name(s));
  const emulator::BlockSample sample(16);
  AttentionShape ends = s, one = s;
  ends.batch = kEndHeads, one.batch = 1;
  const AttentionData data = attention_data(ends, Scores::kNormal);
  EndsOfATensor Q(q_size(s)), K(kv_size(s)), V(kv_size(s)), O(q_size(s)), lse(lse_size(s));
  DeviceBuffer<unsigned char> workspace(static_cast<std::int64_t>(f.workspace_bytes(s)));
  Q.put(data.Q), K.put(data.K), V.put(data.V);
  ForwardArgs<float> args;
  args.shape = s, args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.lse = lse.data();
  args.workspace = workspace.data();
  named(f, [&] {
    f.rung->forward(args);
    CUDA_CHECK(cudaDeviceSynchronize());
  });
  expect_close(f, one, {of_last_head(data.Q), of_last_head(data.K), of_last_head(data.V)},
               {O.last(q_size(one)), lse.last(lse_size(one))});
}

void expect_last_of(std::int64_t batch, std::int64_t seqlen_q, std::int64_t seqlen_k, std::int64_t head_dim) {
  for (const Forward& f : forwards())
    if (!f.is_bf16) expect_last_head(f, {batch, 1, 1, seqlen_q, seqlen_k, head_dim, 0.1f, false});
}

TEST(Offsets, OfMoreThan2To31ElementsOfQAndO) { expect_last_of((1 << 20) + 1, 16, 1, 128); }

TEST(Offsets, OfMoreThan2To31ElementsOfKAndV) { expect_last_of((1 << 17) + 1, 3, 128, 128); }

TEST(Offsets, OfMoreThan2To31Scores) { expect_last_of((1 << 20) + 1, 16, 128, 4); }

}  // namespace
}  // namespace nanolm::cuda
