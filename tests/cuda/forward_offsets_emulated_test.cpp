// Tensors of more than 2^31 elements without the memory for them: of each grid's blocks only those at both ends run,
// and only the first and the last heads exist. The device tests run such shapes whole.
#include <gtest/gtest.h>

#include "emulator/counters.h"
#include "support/cuda_forward.h"

namespace nanolm::cuda {
namespace {

constexpr std::int64_t kHeads = 32;  // at either end hold data

class EndsOfATensor {
 public:
  explicit EndsOfATensor(std::int64_t elements) : buffer_(elements) {}
  float* data() { return buffer_.data(); }
  // `values` are those of kHeads heads.
  void put(const std::vector<float>& values) {
    const std::int64_t size = static_cast<std::int64_t>(values.size());
    for (const std::int64_t first : {std::int64_t{0}, buffer_.size() - size})
      CUDA_CHECK(cudaMemcpy(data() + first, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
  }
  std::vector<float> last(std::int64_t elements) {
    std::vector<float> values(static_cast<std::size_t>(elements));
    CUDA_CHECK(
        cudaMemcpy(values.data(), data() + buffer_.size() - elements, values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  DeviceBuffer<float> buffer_;
};

// The last head, of at most 16 rows, is computed by at most 16 blocks at the grid's end: a block a row, or tiles.
void expect_last_head(const Forward& f, const AttentionShape& s) {
  SCOPED_TRACE(f.name() + ", " + name(s));
  const emulator::BlockSample sample(16);
  AttentionShape ends = s, one = s;
  ends.batch = kHeads, one.batch = 1;
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
  const auto of_last = [](const std::vector<float>& heads, std::int64_t size) {
    return std::vector<float>(heads.end() - size, heads.end());
  };
  expect_close(f, one, {of_last(data.Q, q_size(one)), of_last(data.K, kv_size(one)), of_last(data.V, kv_size(one))},
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
