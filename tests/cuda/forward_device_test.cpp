// What only a device shows of a forward pass: that the launcher just enqueues, grids larger than the device, and
// tensors of more than 2^31 elements.
#include <gtest/gtest.h>

#include "support/cuda_forward.h"
#include "support/cuda_graph.h"

namespace nanolm::cuda {
namespace {

AttentionShape heads(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_k, std::int64_t head_dim, bool causal = false) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {batch, q_heads, kv_heads, seqlen_q, seqlen_k, head_dim, scale, causal};
}

TEST(Device, LauncherOnlyEnqueuesOnItsStream) {
  for (const Forward& f : forwards()) {
    const AttentionShape s = heads(2, 2, 1, 70, 140, 64, true);
    SCOPED_TRACE(f.name() + ", " + name(s));
    const AttentionData data = f.rounded(attention_data(s, Scores::kNormal));
    ForwardCall call(f, s, data);
    CapturedWork work([&call](cudaStream_t stream) { call.launch(stream); });
    EXPECT_TRUE(call.untouched()) << "captured, not run";
    for (int i = 0; i < 2; ++i) {
      work.run();
      expect_close(f, s, data, call.result());
    }
  }
}

TEST(Device, TilesFewerThanEqualToAndMoreThanItsMultiprocessors) {
  const std::int64_t sms = current_device().sms;
  for (const Forward& f : forwards())
    for (const std::int64_t batch : {std::int64_t{1}, sms - 1, sms, sms + 1, 2 * sms + 1})
      for (const bool causal : {false, true})
        expect_matches_oracle(f, heads(batch, 1, 1, 5, 9, 64, causal), Scores::kNormal);
}

TEST(Device, LongSequences) {
  for (const Forward& f : forwards())
    for (const bool causal : {false, true}) {
      expect_matches_oracle(f, heads(1, 2, 1, 1025, 1023, 64, causal), Scores::kGrowing);
      expect_matches_oracle(f, heads(1, 1, 1, 700, 1500, 128, causal), Scores::kLarge);
    }
}

TEST(Device, MoreHeadsThanAGridsSecondDimensionHolds) {
  for (const Forward& f : forwards()) {
    expect_matches_oracle(f, f.served(heads(65536, 1, 1, 2, 3, 8)), Scores::kNormal);
    expect_matches_oracle(f, f.served(heads(1, 65537, 1, 1, 2, 4)), Scores::kNormal);
    expect_matches_oracle(f, f.served(heads(256, 257, 257, 1, 1, 4)), Scores::kNormal);
  }
}

// More than 2^31 elements: Q, K and V are 0 but for a few rows, whose results are known.
class Huge {
 public:
  Huge(const Forward& f, const AttentionShape& s) : shape_(s), f_(f) {}
  // 0 when it fits.
  std::size_t missing_bytes() const {
    const auto elements = static_cast<std::size_t>(2 * q_size(shape_) + 2 * kv_size(shape_));
    const std::size_t needed = elements * f_.element_bytes() + static_cast<std::size_t>(lse_size(shape_)) * 4 +
                               f_.workspace_bytes(shape_) + (std::size_t{1} << 30);
    std::size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    return needed > free_bytes ? needed - free_bytes : 0;
  }
  void allocate() {
    for (DeviceBytesBuffer* tensor : {&Q_, &O_}) *tensor = zeros(q_size(shape_));
    for (DeviceBytesBuffer* tensor : {&K_, &V_}) *tensor = zeros(kv_size(shape_));
    CUDA_CHECK(cudaMemset(O_.data(), 0xFF, O_.bytes()));
    lse_ = DeviceBuffer<float>(lse_size(shape_));
    CUDA_CHECK(cudaMemset(lse_.data(), 0xFF, lse_.bytes()));
    workspace_ = DeviceBytesBuffer(static_cast<std::int64_t>(f_.workspace_bytes(shape_)));
  }
  void put_Q(std::int64_t row, const std::vector<float>& values) { put(Q_, row, values); }
  void put_K(std::int64_t row, const std::vector<float>& values) { put(K_, row, values); }
  void put_V(std::int64_t row, const std::vector<float>& values) { put(V_, row, values); }
  void launch() {
    if (f_.is_bf16)
      launch_as<bf16>(f_.rung->forward_bf16);
    else
      launch_as<float>(f_.rung->forward);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::vector<float> O(std::int64_t row, std::int64_t rows) const {
    Bytes bytes(static_cast<std::size_t>(rows * shape_.head_dim) * f_.element_bytes());
    CUDA_CHECK(cudaMemcpy(bytes.data(), O_.data() + row_bytes(row), bytes.size(), cudaMemcpyDeviceToHost));
    return f_.to_floats(bytes);
  }
  std::vector<float> lse(std::int64_t row, std::int64_t rows) const {
    std::vector<float> values(static_cast<std::size_t>(rows));
    CUDA_CHECK(cudaMemcpy(values.data(), lse_.data() + row, values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  using DeviceBytesBuffer = DeviceBuffer<unsigned char>;
  DeviceBytesBuffer zeros(std::int64_t elements) const {
    DeviceBytesBuffer buffer(elements * static_cast<std::int64_t>(f_.element_bytes()));
    CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
    return buffer;
  }
  std::int64_t row_bytes(std::int64_t row) const {
    return row * shape_.head_dim * static_cast<std::int64_t>(f_.element_bytes());
  }
  void put(DeviceBytesBuffer& tensor, std::int64_t row, const std::vector<float>& values) {
    const Bytes bytes = f_.to_bytes(values);
    CUDA_CHECK(cudaMemcpy(tensor.data() + row_bytes(row), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }
  template <class T>
  void launch_as(ForwardFn<T> forward) {
    ForwardArgs<T> args;
    args.shape = shape_;
    args.Q = reinterpret_cast<T*>(Q_.data()), args.K = reinterpret_cast<T*>(K_.data());
    args.V = reinterpret_cast<T*>(V_.data()), args.O = reinterpret_cast<T*>(O_.data());
    args.lse = lse_.data(), args.workspace = workspace_.data();
    forward(args);
  }

  AttentionShape shape_;
  Forward f_;
  DeviceBytesBuffer Q_{0}, K_{0}, V_{0}, O_{0}, workspace_{0};
  DeviceBuffer<float> lse_{0};
};

// A few (batch, head) of a huge call hold data; each is a call of its own for the oracle. The others are zeros.
void expect_far_heads(const Forward& f, const AttentionShape& s) {
  SCOPED_TRACE(f.name() + ", " + name(s));
  run(f, heads(1, 1, 1, 1, 1, 64), {std::vector<float>(64), std::vector<float>(64), std::vector<float>(64)});
  Huge huge(f, s);
  if (const std::size_t bytes = huge.missing_bytes())
    GTEST_SKIP() << "needs " << static_cast<double>(bytes) / 1e9 << " GB more device memory than is free";
  huge.allocate();
  AttentionShape one = s;
  one.batch = one.q_heads = one.kv_heads = 1;
  const std::int64_t last = s.batch * s.q_heads - 1;
  std::vector<std::pair<std::int64_t, AttentionData>> chosen;
  for (const std::int64_t head : {std::int64_t{0}, last / 2, last}) {
    if (!chosen.empty() && chosen.back().first == head) continue;
    chosen.emplace_back(head, f.rounded(attention_data(one, Scores::kNormal)));
    huge.put_Q(head * s.seqlen_q, chosen.back().second.Q);
    huge.put_K(head * s.seqlen_k, chosen.back().second.K);
    huge.put_V(head * s.seqlen_k, chosen.back().second.V);
  }
  huge.launch();
  for (const auto& [head, data] : chosen) {
    SCOPED_TRACE("head " + std::to_string(head));
    expect_close(f, one, data, {huge.O(head * s.seqlen_q, s.seqlen_q), huge.lse(head * s.seqlen_q, s.seqlen_q)});
  }
  if (last < 2) return;
  const auto elements = static_cast<std::size_t>(q_size(one));
  EXPECT_TRUE(same_bits(huge.O((last - 1) * s.seqlen_q, s.seqlen_q), std::vector<float>(elements, 0)));
}

TEST(Device, MoreThan2To31ElementsOfQAndO) {
  for (const Forward& f : forwards()) expect_far_heads(f, heads(16385, 1, 1, 1024, 3, 128));
}

TEST(Device, MoreThan2To31ElementsOfKAndV) {
  for (const Forward& f : forwards()) expect_far_heads(f, heads(16385, 1, 1, 3, 1024, 128));
}

TEST(Device, MoreThan2To31Scores) {
  for (const Forward& f : forwards()) expect_far_heads(f, f.served(heads(16385, 1, 1, 363, 363, 16)));
}

TEST(Device, OneHeadOfMoreThan2To31Elements) {
  const std::int64_t rows = (std::int64_t{1} << 24) + 1, dim = 128;
  const std::vector<float> ones(128, 1.0f), low(128, 0.5f);
  for (const Forward& f : forwards()) {
    // The last query is alone not 0: it prefers key 1, the others weigh both alike.
    Huge queries(f, heads(1, 1, 1, rows, 2, dim)), keys(f, heads(1, 1, 1, 2, rows, dim));
    run(f, heads(1, 1, 1, 1, 1, 64), {std::vector<float>(64), std::vector<float>(64), std::vector<float>(64)});
    if (queries.missing_bytes() || keys.missing_bytes()) GTEST_SKIP() << "needs 18 GB of device memory";
    queries.allocate();
    queries.put_Q(rows - 1, std::vector<float>(128, 16.0f));
    queries.put_K(1, ones);
    queries.put_V(0, low);
    queries.put_V(1, ones);
    queries.launch();
    EXPECT_TRUE(same_bits(queries.O(rows - 1, 1), ones)) << f.name() << ", the last of 2^24 + 1 queries";
    EXPECT_TRUE(same_bits(queries.O(rows - 2, 1), std::vector<float>(128, 0.75f))) << f.name() << ", the one before";
    // The last key is alone not 0: its score is 181, and exp(-181) of the others is 0.
    queries = Huge(f, heads(1, 1, 1, 0, 0, dim));
    keys.allocate();
    keys.put_Q(0, std::vector<float>(128, 16.0f));
    keys.put_K(rows - 1, ones);
    keys.put_V(rows - 1, low);
    keys.launch();
    EXPECT_TRUE(same_bits(keys.O(0, 1), low)) << f.name() << ", the last of 2^24 + 1 keys";
  }
}

}  // namespace
}  // namespace nanolm::cuda
