// The truth: attention by brute force in double precision, written apart from either tree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nanolm/attention_shape.h"

namespace nanolm::oracle {

struct Forward {
  std::vector<double> O, lse;
  std::vector<double> P;       // [batch, q_heads, seqlen_q, seqlen_k]
  double score_magnitude = 0;  // max over i, j of scale * sum_h |Q[i, h] * K[j, h]|
  double value_magnitude = 0;  // max |V|
};
Forward forward(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                std::span<const float> V);

struct Backward {
  std::vector<double> delta, dQ, dK, dV;
  double score_magnitude = 0;
  // The largest sum over the absolute values of the terms of one element: what the error of a gradient scales with.
  double delta_magnitude = 0, dQ_magnitude = 0, dK_magnitude = 0, dV_magnitude = 0;
};
Backward backward(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                  std::span<const float> V, std::span<const float> dO);

// Largest error that an fp32 kernel may show in O (times max|v|) and in lse. Of a score of magnitude s, computed as a
// dot product of head_dim terms, rounding leaves an error of a few eps * s plus, as a random walk, eps * sqrt(head_dim)
// * s; exp turns it into a relative error of the weight, and summing n weights adds sqrt(n) roundings:
//   eps * ((4 + sqrt(head_dim)) * s + 2 sqrt(n) + 8)      eps = 2^-23; head_dim = 0 where scores are given
// Half-precision accumulators (2^-11) miss it by a factor of 10 and more.
double softmax_tolerance(double score_magnitude, std::int64_t n, std::int64_t head_dim = 0);
double output_tolerance(const AttentionShape& shape, const Forward& truth);
double lse_tolerance(const AttentionShape& shape, const Forward& truth);
// The same with its numbers, for a failure's message: "; tolerance = 2^-23 ((4 + sqrt(20)) 3.2 + 2 sqrt(33) + 8) 2.9".
std::string derivation(double score_magnitude, std::int64_t n, std::int64_t head_dim, double factor);
std::string derivation(const AttentionShape& shape, const Forward& truth, bool of_output);

// Largest error that an fp32 kernel may show in a gradient, times its magnitude: a term is P times a factor, so it has
// the relative error of P, and the n of softmax_tolerance counts the terms of the longest sum that is behind it.
double gradient_tolerance(const AttentionShape& shape, const Backward& truth);
std::string derivation(const AttentionShape& shape, const Backward& truth, double magnitude);

// A row of scores and its values, as lesson 03 has them.
struct Row {
  std::vector<double> out;
  double lse = 0, score_magnitude = 0, value_magnitude = 0;
};
Row softmax_row(std::span<const float> scores, std::span<const float> values);

}  // namespace nanolm::oracle
