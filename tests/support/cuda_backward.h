// A call of a rung's backward pass, emulated or on a device: its tensors, where they lie, and what came out.
#pragma once

#include <gtest/gtest.h>

#include "support/backward_problem.h"
#include "support/cuda_typed.h"

namespace nanolm::cuda {

// A rung's backward pass. fp32 is the only type that a rung has so far.
struct Backward : Typed {
  std::size_t workspace_bytes(const AttentionShape& s) const {
    return rung->workspace_bytes ? static_cast<std::size_t>(rung->workspace_bytes(s)) : 0;
  }
};
inline std::vector<Backward> backwards() {
  std::vector<Backward> all;
  for (const Rung* rung : ladder())
    if (rung->backward) all.push_back({{rung, false}});
  if (all.empty()) throw std::logic_error("no rung of this program has a backward pass");
  return all;
}

struct Gradients {
  Floats dQ, dK, dV;
};
class BackwardCall {
 public:
  BackwardCall(const Backward& b, const Problem& p, Place place = {})
      : shape(p.shape),
        b_(b),
        Q_(DeviceBytes::input(b.tensor("Q", place, kQ), b.to_bytes(p.data.Q))),
        K_(DeviceBytes::input(b.tensor("K", place, kK), b.to_bytes(p.data.K))),
        V_(DeviceBytes::input(b.tensor("V", place, kV), b.to_bytes(p.data.V))),
        O_(DeviceBytes::input(b.tensor("O", place, kO), b.to_bytes(p.O))),
        dO_(DeviceBytes::input(b.tensor("dO", place, kGradientO), b.to_bytes(p.dO))),
        lse_(
            DeviceBytes::input({"lse", sizeof(float), place.guarded, place.shifted & kLse ? 1u : 0u}, bytes_of(p.lse))),
        dQ_(DeviceBytes::output(b.tensor("dQ", place, kGradientQ), size_of(p.data.Q))),
        dK_(DeviceBytes::output(b.tensor("dK", place, kGradientK), size_of(p.data.K))),
        dV_(DeviceBytes::output(b.tensor("dV", place, kGradientV), size_of(p.data.V))),
        workspace_(DeviceBytes::scratch({"workspace", sizeof(float), place.guarded}, b.workspace_bytes(p.shape))) {}

  void launch(cudaStream_t stream = nullptr) {
    BackwardArgs<float> args;
    args.shape = shape;
    args.Q = Q_.as<float>(), args.K = K_.as<float>(), args.V = V_.as<float>();
    args.O = O_.as<float>(), args.dO = dO_.as<float>(), args.lse = lse_.as<float>();
    args.dQ = dQ_.as<float>(), args.dK = dK_.as<float>(), args.dV = dV_.as<float>();
    args.workspace = workspace_.data();
    args.stream = stream;
    named(b_, [&] { b_.rung->backward(args); });
  }
  // Waits for the device.
  Gradients result() {
    named(b_, [] { CUDA_CHECK(cudaDeviceSynchronize()); });
    EXPECT_TRUE(no_error_left());
    for (const DeviceBytes* tensor : {&dQ_, &dK_, &dV_, &workspace_, &Q_, &K_, &V_, &O_, &dO_, &lse_})
      EXPECT_TRUE(tensor->intact());
    return {values_of<float>(dQ_.to_host()), values_of<float>(dK_.to_host()), values_of<float>(dV_.to_host())};
  }
  bool untouched() const { return dQ_.untouched() && dK_.untouched() && dV_.untouched(); }

  AttentionShape shape;  // a test of refusals changes it

 private:
  static std::size_t size_of(const Floats& values) { return values.size() * sizeof(float); }

  Backward b_;
  DeviceBytes Q_, K_, V_, O_, dO_, lse_, dQ_, dK_, dV_, workspace_;
};

inline Gradients run(const Backward& b, const Problem& p, Place place = {}) {
  BackwardCall call(b, p, place);
  call.launch();
  return call.result();
}

inline void expect_refused(const Backward& b, const AttentionShape& good, const AttentionShape& bad) {
  BackwardCall call(b, Problem(good, Scores::kNormal));
  call.shape = bad;
  EXPECT_THROW(call.launch(), std::invalid_argument) << name(bad) << " scale " << bad.scale;
  EXPECT_TRUE(call.untouched()) << name(bad);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << name(bad);
}

// Each gradient is compared on its own, in the order in which rung 05 is written.
enum Which : unsigned { kOfV = 1, kOfK = 2, kOfQ = 4, kOfAll = 7 };
inline void expect_close(const Problem& p, const Gradients& g, unsigned which = kOfAll) {
  const AttentionShape& s = p.shape;
  const oracle::Backward truth = p.truth();
  const double t = oracle::gradient_tolerance(s, truth);
  const std::vector<Dim> keys{{"batch", s.batch}, {"head", s.kv_heads}, {"row", s.seqlen_k}, {"column", s.head_dim}};
  const std::vector<Dim> rows{{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q}, {"column", s.head_dim}};
  const auto check = [&](const char* gradient, const Floats& actual, const std::vector<double>& expected,
                         double magnitude, const std::vector<Dim>& dims) {
    EXPECT_TRUE(all_close(actual, expected, t * magnitude, dims)) << gradient << derivation(s, truth, magnitude);
  };
  if (which & kOfV) check("dV", g.dV, truth.dV, truth.dV_magnitude, keys);
  if (which & kOfK) check("dK", g.dK, truth.dK, truth.dK_magnitude, keys);
  if (which & kOfQ) check("dQ", g.dQ, truth.dQ, truth.dQ_magnitude, rows);
}

// A shape that supports() denies must be refused.
inline void expect_matches_oracle(const Backward& b, const AttentionShape& s, Scores scores, unsigned which = kOfAll,
                                  Place place = {}) {
  SCOPED_TRACE(b.name() + ", " + name(s) + ", " + name(scores));
  if (!b.serves(s)) return expect_refused(b, s, s);
  const Case this_case(s);
  const Problem p(s, scores);
  expect_close(p, run(b, p, place), which);
}

}  // namespace nanolm::cuda
