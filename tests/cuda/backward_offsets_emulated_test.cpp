// Tensors of more than 2^31 elements without the memory for them: of each grid's blocks only those at both ends run,
// and only the first and the last heads exist. The device tests run such shapes whole.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_backward.h"

namespace nanolm::cuda {
namespace {

constexpr std::int64_t kHeads = 32;  // at either end hold data

class EndsOfATensor {
 public:
  explicit EndsOfATensor(std::int64_t elements) : buffer_(elements) {}
  float* data() { return buffer_.data(); }
  // `values` are those of kHeads heads.
  void put(const Floats& values) {
    const std::int64_t size = static_cast<std::int64_t>(values.size());
    for (const std::int64_t first : {std::int64_t{0}, buffer_.size() - size})
      CUDA_CHECK(cudaMemcpy(data() + first, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
  }
  Floats last(std::size_t elements) {
    Floats values(elements);
    CUDA_CHECK(cudaMemcpy(values.data(), data() + buffer_.size() - static_cast<std::int64_t>(elements),
                          values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  DeviceBuffer<float> buffer_;
};
Floats last_of(const Floats& heads) {
  return {heads.end() - static_cast<std::ptrdiff_t>(heads.size()) / kHeads, heads.end()};
}

// The last head, of one tile of queries and one of keys, is computed by the last block of each grid.
void expect_last_head(const Backward& b, const AttentionShape& s) {
  SCOPED_TRACE(b.name() + ", " + name(s));
  const emulator::BlockSample sample(16);
  AttentionShape ends = s, one = s;
  ends.batch = kHeads, one.batch = 1;
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
  last.data = {last_of(p.data.Q), last_of(p.data.K), last_of(p.data.V)};
  last.O = last_of(p.O), last.dO = last_of(p.dO), last.lse = last_of(p.lse);
  expect_close(last, {dQ.last(last.O.size()), dK.last(last.data.K.size()), dV.last(last.data.K.size())});
}

TEST(Offsets, OfMoreThan2To31ElementsOfQueries) {
  for (const Backward& b : backwards()) expect_last_head(b, {(1 << 20) + 1, 1, 1, 16, 1, 128, 0.1f, false});
}

TEST(Offsets, OfMoreThan2To31ElementsOfKeys) {
  for (const Backward& b : backwards()) expect_last_head(b, {(1 << 20) + 1, 1, 1, 1, 16, 128, 0.1f, false});
}

}  // namespace
}  // namespace nanolm::cuda
