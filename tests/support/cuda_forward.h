// A call of a rung's forward pass, emulated or on a device: its tensors, where they lie, and what came out.
#pragma once

#include <gtest/gtest.h>

#include "support/cuda_typed.h"

namespace nanolm::cuda {

// A rung's forward pass in one of its types.
struct Forward : Typed {
  bool has_score_matrix() const { return name().find("naive") != std::string::npos; }
  std::size_t workspace_bytes(const AttentionShape& s) const {
    return rung->workspace_bytes ? static_cast<std::size_t>(rung->workspace_bytes(s)) : 0;
  }
};
inline std::vector<Forward> forwards() {
  std::vector<Forward> all;
  for (const Rung* rung : ladder()) {
    if (rung->forward) all.push_back({{rung, false}});
    if (rung->forward_bf16) all.push_back({{rung, true}});
  }
  if (all.empty()) throw std::logic_error("no rung of this program has a forward pass");
  return all;
}

struct Result {
  std::vector<float> O, lse;
};
class ForwardCall {
 public:
  ForwardCall(const Forward& f, const AttentionShape& s, const AttentionData& data, Place place = {})
      : shape(s),
        f_(f),
        Q_(DeviceBytes::input(f.tensor("Q", place, kQ), f.to_bytes(data.Q))),
        K_(DeviceBytes::input(f.tensor("K", place, kK), f.to_bytes(data.K))),
        V_(DeviceBytes::input(f.tensor("V", place, kV), f.to_bytes(data.V))),
        O_(DeviceBytes::output(f.tensor("O", place, kO), static_cast<std::size_t>(q_size(s)) * f.element_bytes())),
        lse_(DeviceBytes::output({"lse", sizeof(float), place.guarded, place.shifted & kLse ? 1u : 0u},
                                 static_cast<std::size_t>(lse_size(s)) * sizeof(float))),
        workspace_(DeviceBytes::scratch({"workspace", sizeof(float), place.guarded}, f.workspace_bytes(s))) {}

  void launch(cudaStream_t stream = nullptr) {
    named(f_, [&] {
      if (f_.is_bf16)
        launch_as<bf16>(f_.rung->forward_bf16, stream);
      else
        launch_as<float>(f_.rung->forward, stream);
    });
  }
  // Waits for the device.
  Result result() {
    named(f_, [] { CUDA_CHECK(cudaDeviceSynchronize()); });
    EXPECT_TRUE(no_error_left());
    EXPECT_TRUE(O_.intact());
    EXPECT_TRUE(lse_.intact());
    EXPECT_TRUE(workspace_.intact());
    EXPECT_TRUE(Q_.intact());
    EXPECT_TRUE(K_.intact());
    EXPECT_TRUE(V_.intact());
    return {f_.to_floats(O_.to_host()), values_of<float>(lse_.to_host())};
  }
  bool untouched() const { return O_.untouched() && lse_.untouched(); }

  AttentionShape shape;  // a test of refusals changes it

 private:
  template <class T>
  void launch_as(ForwardFn<T> forward, cudaStream_t stream) {
    ForwardArgs<T> args;
    args.shape = shape;
    args.Q = Q_.as<T>(), args.K = K_.as<T>(), args.V = V_.as<T>();
    args.O = O_.as<T>(), args.lse = lse_.as<float>(), args.workspace = workspace_.data();
    args.stream = stream;
    forward(args);
  }

  Forward f_;
  DeviceBytes Q_, K_, V_, O_, lse_, workspace_;
};

inline Result run(const Forward& f, const AttentionShape& s, const AttentionData& data, Place place = {}) {
  ForwardCall call(f, s, data, place);
  call.launch();
  return call.result();
}

inline void expect_refused(const Forward& f, const AttentionShape& good, const AttentionShape& bad) {
  ForwardCall call(f, good,
                   {std::vector<float>(static_cast<std::size_t>(q_size(good))),
                    std::vector<float>(static_cast<std::size_t>(kv_size(good))),
                    std::vector<float>(static_cast<std::size_t>(kv_size(good)))});
  call.shape = bad;
  EXPECT_THROW(call.launch(), std::invalid_argument) << name(bad) << " scale " << bad.scale;
  EXPECT_TRUE(call.untouched()) << name(bad);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << name(bad);
}

inline void expect_close(const Forward& f, const AttentionShape& s, const AttentionData& data, const Result& r) {
  const oracle::Forward truth = oracle::forward(s, data.Q, data.K, data.V);
  const std::vector<Dim> rows{{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q}};
  std::vector<Dim> elements = rows;
  elements.push_back({"column", s.head_dim});
  EXPECT_TRUE(all_close(r.O, truth.O, output_tolerance(f, s, truth), elements))
      << "O" << derivation(s, truth, true) << (f.is_bf16 ? ", and 2^-8 max|V| for bf16" : "");
  EXPECT_TRUE(all_close(r.lse, truth.lse, lse_tolerance(s, truth), rows)) << "lse" << derivation(s, truth, false);
}

// A shape that supports() denies must be refused.
inline void expect_matches_oracle(const Forward& f, const AttentionShape& s, Scores scores, Place place = {}) {
  SCOPED_TRACE(f.name() + ", " + name(s) + ", " + name(scores));
  if (!f.serves(s)) return expect_refused(f, s, s);
  const AttentionData data = f.rounded(attention_data(s, scores));
  expect_close(f, s, data, run(f, s, data, place));
}

}  // namespace nanolm::cuda
