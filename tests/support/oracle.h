// The truth: attention by brute force in double precision, written apart from either tree.
#pragma once

#include <span>
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
};
Backward backward(const AttentionShape& shape, std::span<const float> Q, std::span<const float> K,
                  std::span<const float> V, std::span<const float> dO);

// Largest error that an fp32 kernel may show in O (times max|v|) and in lse. A score of magnitude s carries an error of
// a few eps * s, exp turns it into a relative error of the weight, and summing n weights adds sqrt(n) roundings:
// eps * (4 s + 2 sqrt(n) + 8), eps = 2^-23. Half-precision accumulators (2^-11) miss it by a factor of 10 and more.
double softmax_tolerance(double score_magnitude, std::int64_t n);
double output_tolerance(const AttentionShape& shape, const Forward& truth);
double lse_tolerance(const AttentionShape& shape, const Forward& truth);

// A row of scores and its values, as lesson 03 has them.
struct Row {
  std::vector<double> out;
  double lse = 0, score_magnitude = 0, value_magnitude = 0;
};
Row softmax_row(std::span<const float> scores, std::span<const float> values);

}  // namespace nanolm::oracle
