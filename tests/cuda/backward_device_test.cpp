// What only a device shows of a backward pass: that the launcher just enqueues, long sequences, 2^31 elements.
#include <gtest/gtest.h>

#include "support/cuda_backward.h"
#include "support/cuda_graph.h"

namespace nanolm::cuda {
namespace {

AttentionShape heads(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, scale, causal};
}

TEST(Device, LauncherOnlyEnqueuesOnItsStream) {
  for (const Backward& b : backwards()) {
    const Problem p(heads(2, 2, 1, 70, 140, 64, true), Scores::kNormal);
    SCOPED_TRACE(b.name() + ", " + name(p.shape));
    BackwardCall call(b, p);
    CapturedWork work([&call](cudaStream_t stream) { call.launch(stream); });
    EXPECT_TRUE(call.untouched()) << "captured, not run";
    for (int i = 0; i < 2; ++i) {
      work.run();
      expect_close(p, call.result());
    }
  }
}

TEST(Device, TilesFewerThanEqualToAndMoreThanItsMultiprocessors) {
  const std::int64_t sms = current_device().sms;
  for (const Backward& b : backwards())
    for (const std::int64_t batch : {std::int64_t{1}, sms - 1, sms, sms + 1, 2 * sms + 1})
      for (const bool causal : {false, true})
        expect_matches_oracle(b, heads(batch, 1, 1, 5, 9, 64, causal), Scores::kNormal);
}

TEST(Device, LongSequences) {
  for (const Backward& b : backwards())
    for (const bool causal : {false, true}) {
      expect_matches_oracle(b, heads(1, 2, 1, 1025, 1023, 64, causal), Scores::kGrowing);
      expect_matches_oracle(b, heads(1, 1, 1, 700, 1500, 128, causal), Scores::kLarge);
    }
}

TEST(Device, TwentyRunsGiveTheSameBits) {
  for (const Backward& b : backwards()) {
    BackwardCall call(b, Problem(heads(2, 8, 2, 513, 777, 64, true), Scores::kNormal));
    call.launch();
    const Gradients first = call.result();
    for (int i = 0; i < 20; ++i) {
      call.launch();
      const Gradients again = call.result();
      ASSERT_TRUE(same_bits(again.dV, first.dV)) << b.name() << ", dV of run " << i;
      ASSERT_TRUE(same_bits(again.dK, first.dK)) << b.name() << ", dK of run " << i;
      ASSERT_TRUE(same_bits(again.dQ, first.dQ)) << b.name() << ", dQ of run " << i;
    }
  }
}

// Tensors of zeros with more than 2^31 elements, but for the last head: a call of its own for the oracle.
TEST(Device, MoreThan2To31Elements) {
  for (const Backward& b : backwards()) {
    const AttentionShape s = heads((1 << 17) + 1, 1, 1, 128, 128, 128);
    const std::size_t bytes = static_cast<std::size_t>(q_size(s)) * sizeof(float);
    SKIP_WITHOUT_MEMORY(8 * bytes + 2 * static_cast<std::size_t>(lse_size(s)) * sizeof(float));
    SCOPED_TRACE(b.name() + ", " + name(s));
    AttentionShape one = s;
    one.batch = 1;
    const Problem p(one, Scores::kNormal);
    const std::int64_t last = q_size(s) - q_size(one), last_row = lse_size(s) - lse_size(one);
    const auto zeros = [](std::int64_t size) {
      DeviceBuffer<float> buffer(size);
      CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
      return buffer;
    };
    const auto put = [](DeviceBuffer<float>& to, std::int64_t first, const Floats& values) {
      CUDA_CHECK(cudaMemcpy(to.data() + first, values.data(), 4 * values.size(), cudaMemcpyHostToDevice));
    };
    const auto take = [last](const DeviceBuffer<float>& from) {
      Floats values(128 * 128);
      CUDA_CHECK(cudaMemcpy(values.data(), from.data() + last, 4 * values.size(), cudaMemcpyDeviceToHost));
      return values;
    };
    DeviceBuffer<float> Q = zeros(q_size(s)), K = zeros(q_size(s)), V = zeros(q_size(s)), O = zeros(q_size(s)),
                        dO = zeros(q_size(s)), lse = zeros(lse_size(s)), delta = zeros(lse_size(s));
    DeviceBuffer<float> dQ(q_size(s)), dK(q_size(s)), dV(q_size(s));
    put(Q, last, p.data.Q), put(K, last, p.data.K), put(V, last, p.data.V);
    put(O, last, p.O), put(dO, last, p.dO), put(lse, last_row, p.lse);
    BackwardArgs<float> args;
    args.shape = s, args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.dO = dO.data();
    args.lse = lse.data(), args.dQ = dQ.data(), args.dK = dK.data(), args.dV = dV.data();
    args.workspace = delta.data();
    EXPECT_EQ(b.workspace_bytes(s), delta.bytes());
    named(b, [&] {
      b.rung->backward(args);
      CUDA_CHECK(cudaDeviceSynchronize());
    });
    expect_close(p, {take(dQ), take(dK), take(dV)});
  }
}

}  // namespace
}  // namespace nanolm::cuda
