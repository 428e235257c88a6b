// A call of attention_backward: its inputs, its outputs and where they lie.
#pragma once

#include <numeric>

#include "nanolm/attention_backward.h"
#include "support/all_close.h"
#include "support/cases.h"
#include "support/data.h"
#include "support/oracle.h"
#include "support/output.h"

namespace nanolm {

using Floats = std::vector<float>;
inline Floats floats(const Output& out) { return {out.span().begin(), out.span().end()}; }

// A forward pass that has been made: O and lse are the oracle's, rounded to float.
struct Problem {
  Problem(const AttentionShape& s, Scores scores) : shape(s), data(attention_data(s, scores)), dO(normal(q_size(s))) {
    const oracle::Forward truth = oracle::forward(shape, data.Q, data.K, data.V);
    O.assign(truth.O.begin(), truth.O.end());
    lse.assign(truth.lse.begin(), truth.lse.end());
  }
  oracle::Backward truth() const { return oracle::backward(shape, data.Q, data.K, data.V, dO); }

  AttentionShape shape;
  AttentionData data;
  Floats dO, O, lse;
};

struct Gradients {
  explicit Gradients(const AttentionShape& s) : dQ(q_size(s)), dK(kv_size(s)), dV(kv_size(s)) {}
  Output dQ, dK, dV;
};
inline Gradients backward(const Problem& p, const Tiling& tiling) {
  Gradients g(p.shape);
  attention_backward(p.shape, tiling, p.data.Q, p.data.K, p.data.V, p.O, p.dO, p.lse, g.dQ.span(), g.dK.span(),
                     g.dV.span());
  EXPECT_TRUE(g.dQ.canaries_intact() && g.dK.canaries_intact() && g.dV.canaries_intact()) << "wrote outside a gradient";
  return g;
}

inline std::vector<Dim> query_dims(const AttentionShape& s, const Tiling& tiling) {
  return {{"batch", s.batch}, {"head", s.q_heads}, {"row", s.seqlen_q, tiling.block_q}, {"column", s.head_dim}};
}
inline std::vector<Dim> key_dims(const AttentionShape& s, const Tiling& tiling) {
  return {{"batch", s.batch}, {"head", s.kv_heads}, {"row", s.seqlen_k, tiling.block_k}, {"column", s.head_dim}};
}

inline void expect_gradients(const Problem& p, const Tiling& tiling) {
  SCOPED_TRACE(name(p.shape) + ", tiles " + std::to_string(tiling.block_q) + "/" + std::to_string(tiling.block_k));
  const Case this_case(p.shape, tiling);
  const oracle::Backward truth = p.truth();
  const Gradients g = backward(p, tiling);
  const double t = oracle::gradient_tolerance(p.shape, truth);
  EXPECT_TRUE(all_close(g.dQ, truth.dQ, t * truth.dQ_magnitude, query_dims(p.shape, tiling)))
      << "dQ" << derivation(p.shape, truth, truth.dQ_magnitude);
  EXPECT_TRUE(all_close(g.dK, truth.dK, t * truth.dK_magnitude, key_dims(p.shape, tiling)))
      << "dK" << derivation(p.shape, truth, truth.dK_magnitude);
  EXPECT_TRUE(all_close(g.dV, truth.dV, t * truth.dV_magnitude, key_dims(p.shape, tiling)))
      << "dV" << derivation(p.shape, truth, truth.dV_magnitude);
}
// Derivatives of L = sum dO o O by each element of x, which is one of the problem's tensors, by central differences in
// double. Their own error is step^2 / 6 times a third derivative, about 1e-6.
inline std::vector<double> central_differences(const Problem& p, Floats& x) {
  const auto loss = [&p] {
    const std::vector<double> O = oracle::forward(p.shape, p.data.Q, p.data.K, p.data.V).O;
    return std::inner_product(O.begin(), O.end(), p.dO.begin(), 0.0);
  };
  std::vector<double> derivatives;
  for (float& element : x) {
    const float middle = element, above = middle + 0x1p-10f, below = middle - 0x1p-10f;
    element = above;
    const double right = loss();
    element = below;
    derivatives.push_back((right - loss()) / (static_cast<double>(above) - static_cast<double>(below)));
    element = middle;
  }
  return derivatives;
}

}  // namespace nanolm
