// A call of a rung's decode, emulated or on a device: its tensors, where they lie, and what came out.
#pragma once

#include <gtest/gtest.h>

#include "support/cuda_typed.h"

namespace nanolm::cuda {

// A rung's decode in one of its types.
struct Decode : Typed {
  std::size_t workspace_bytes(const AttentionShape& s, int splits) const {
    return rung->decode_workspace_bytes ? static_cast<std::size_t>(rung->decode_workspace_bytes(s, splits)) : 0;
  }
};
inline std::vector<Decode> decodes() {
  std::vector<Decode> all;
  for (const Rung* rung : ladder()) {
    if (rung->decode) all.push_back({{rung, false}});
    if (rung->decode_bf16) all.push_back({{rung, true}});
  }
  if (all.empty()) throw std::logic_error("no rung of this program decodes");
  return all;
}

struct Decoded {
  std::vector<float> O, lse;
};
class DecodeCall {
 public:
  DecodeCall(const Decode& d, const AttentionShape& s, int wanted_splits, const AttentionData& data, Place place = {})
      : shape(s),
        splits(wanted_splits),
        d_(d),
        Q_(DeviceBytes::input(d.tensor("Q", place, kQ), d.to_bytes(data.Q))),
        K_(DeviceBytes::input(d.tensor("K", place, kK), d.to_bytes(data.K))),
        V_(DeviceBytes::input(d.tensor("V", place, kV), d.to_bytes(data.V))),
        O_(DeviceBytes::output(d.tensor("O", place, kO), static_cast<std::size_t>(q_size(s)) * d.element_bytes())),
        lse_(DeviceBytes::output({"lse", sizeof(float), place.guarded, place.shifted & kLse ? 1u : 0u},
                                 static_cast<std::size_t>(lse_size(s)) * sizeof(float))),
        workspace_(
            DeviceBytes::scratch({"workspace", sizeof(float), place.guarded}, d.workspace_bytes(s, wanted_splits))) {}

  void launch(cudaStream_t stream = nullptr) {
    named(d_, [&] { d_.is_bf16 ? launch_as<bf16>(d_.rung->decode_bf16, stream) : launch_as(d_.rung->decode, stream); });
  }
  // Waits for the device.
  Decoded result() {
    named(d_, [] { CUDA_CHECK(cudaDeviceSynchronize()); });
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the launch left an error behind";
    for (const DeviceBytes* tensor : {&O_, &lse_, &workspace_, &Q_, &K_, &V_}) EXPECT_TRUE(tensor->intact());
    return {d_.to_floats(O_.to_host()), values_of<float>(lse_.to_host())};
  }
  bool untouched() const { return O_.untouched() && lse_.untouched(); }

  AttentionShape shape;  // a test of refusals changes it
  int splits;

 private:
  template <class T>
  void launch_as(DecodeFn<T> decode, cudaStream_t stream) {
    DecodeArgs<T> args;
    args.shape = shape, args.splits = splits;
    args.Q = Q_.as<T>(), args.K = K_.as<T>(), args.V = V_.as<T>();
    args.O = O_.as<T>(), args.lse = lse_.as<float>(), args.workspace = workspace_.data();
    args.stream = stream;
    decode(args);
  }

  Decode d_;
  DeviceBytes Q_, K_, V_, O_, lse_, workspace_;
};

inline Decoded run(const Decode& d, const AttentionShape& s, int splits, const AttentionData& data, Place place = {}) {
  DecodeCall call(d, s, splits, data, place);
  call.launch();
  return call.result();
}

inline void expect_close(const Decode& d, const AttentionShape& s, const AttentionData& data, const Decoded& r) {
  const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
  const std::vector<Dim> rows{{"batch", s.batch}, {"head", s.q_heads}};
  std::vector<Dim> elements = rows;
  elements.push_back({"column", s.head_dim});
  EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(d, s, truth), elements))
      << "O" << derivation(s, truth, true) << (d.is_bf16 ? ", and 2^-8 max|V| for bf16" : "");
  EXPECT_TRUE(all_close(r.lse, truth.lse, lse_tolerance(s, truth), rows)) << "lse" << derivation(s, truth, false);
}

inline void expect_refused(const Decode& d, const AttentionShape& good, const AttentionShape& bad, int splits) {
  const auto zeros = [](std::int64_t size) { return std::vector<float>(static_cast<std::size_t>(size)); };
  DecodeCall call(d, good, 1, {zeros(q_size(good)), zeros(kv_size(good)), zeros(kv_size(good))});
  call.shape = bad, call.splits = splits;
  EXPECT_THROW(call.launch(), std::invalid_argument) << name(bad) << " splits " << splits;
  EXPECT_TRUE(call.untouched()) << name(bad);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << name(bad);
}

// A shape that supports() denies must be refused.
inline void expect_matches_oracle(const Decode& d, const AttentionShape& s, int splits, Scores scores,
                                  Place place = {}) {
  SCOPED_TRACE(d.name() + ", " + name(s) + ", " + name(scores) + ", splits " + std::to_string(splits));
  if (!d.serves(s)) return expect_refused(d, s, s, splits);
  const AttentionData data = d.rounded(attention_data(s, scores));
  expect_close(d, s, data, run(d, s, splits, data, place));
}

}  // namespace nanolm::cuda
