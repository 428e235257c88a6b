#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_decode.h"
#include "support/cuda_ends.h"

namespace nanolm::cuda {
namespace {

// The last head is computed by the grid's last block.
TEST(Offsets, OfMoreThan2To31ElementsOfTheCache) {
  for (const Decode& d : decodes()) {
    if (d.is_bf16) continue;
    const AttentionShape s{(1 << 17) + 1, 1, 1, 1, 128, 128, 0.1f, false};
    SCOPED_TRACE(d.name() + ", " + name(s));
    const emulator::BlockSample sample(16);
    AttentionShape ends = s, one = s;
    ends.batch = kEndHeads, one.batch = 1;
    const AttentionData data = attention_data(ends, Scores::kNormal);
    EndsOfATensor Q(q_size(s)), K(kv_size(s)), V(kv_size(s)), O(q_size(s)), lse(lse_size(s));
    DeviceBuffer<unsigned char> workspace(static_cast<std::int64_t>(d.workspace_bytes(s, 1)));
    Q.put(data.Q), K.put(data.K), V.put(data.V);
    DecodeArgs<float> args;
    args.shape = s, args.splits = 1;
    args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.lse = lse.data();
    args.workspace = workspace.data();
    named(d, [&] {
      d.rung->decode(args);
      CUDA_CHECK(cudaDeviceSynchronize());
    });
    expect_close(d, one, {of_last_head(data.Q), of_last_head(data.K), of_last_head(data.V)},
                 {O.last(q_size(one)), lse.last(lse_size(one))});
  }
}

}  // namespace
}  // namespace nanolm::cuda
