#include "support/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace nanolm::oracle {

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool sees(const AttentionShape& s, std::int64_t i, std::int64_t j) {
  return !s.causal || j <= i + s.seqlen_k - s.seqlen_q;
}

// Calls body(lse row index, first Q element, kv head's first K element) for each query row.
template <class Body>
void for_each_row(const AttentionShape& s, Body body) {
  const std::int64_t group = s.q_heads / s.kv_heads;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t i = 0; i < s.seqlen_q; ++i) {
        const std::int64_t row = (b * s.q_heads + h) * s.seqlen_q + i;
        body(row, i, row * s.head_dim, (b * s.kv_heads + h / group) * s.seqlen_k * s.head_dim);
      }
}
}  // namespace

Forward forward(const AttentionShape& s, std::span<const float> Q, std::span<const float> K, std::span<const float> V) {
  Forward r;
  r.O.assign(at(q_size(s)), 0.0);
  r.lse.assign(at(lse_size(s)), -kInf);
  r.P.assign(at(scores_size(s)), 0.0);
  for (const float v : V) r.value_magnitude = std::max(r.value_magnitude, std::abs(static_cast<double>(v)));
  std::vector<double> scores(at(s.seqlen_k));
  for_each_row(s, [&](std::int64_t row, std::int64_t i, std::int64_t q0, std::int64_t k0) {
    double max = -kInf;
    for (std::int64_t j = 0; j < s.seqlen_k; ++j) {
      double dot = 0, magnitude = 0;
      for (std::int64_t h = 0; h < s.head_dim; ++h) {
        const double term = static_cast<double>(Q[at(q0 + h)]) * static_cast<double>(K[at(k0 + j * s.head_dim + h)]);
        dot += term;
        magnitude += std::abs(term);
      }
      scores[at(j)] = sees(s, i, j) ? s.scale * dot : -kInf;
      if (!sees(s, i, j)) continue;
      r.score_magnitude = std::max(r.score_magnitude, s.scale * magnitude);
      max = std::max(max, scores[at(j)]);
    }
    if (max == -kInf) return;
    double sum = 0;
    for (std::int64_t j = 0; j < s.seqlen_k; ++j)
      if (sees(s, i, j)) sum += std::exp(scores[at(j)] - max);
    for (std::int64_t j = 0; j < s.seqlen_k; ++j) {
      if (!sees(s, i, j)) continue;
      const double p = std::exp(scores[at(j)] - max) / sum;
      r.P[at(row * s.seqlen_k + j)] = p;
      for (std::int64_t h = 0; h < s.head_dim; ++h)
        r.O[at(q0 + h)] += p * static_cast<double>(V[at(k0 + j * s.head_dim + h)]);
    }
    r.lse[at(row)] = max + std::log(sum);
  });
  return r;
}

Backward backward(const AttentionShape& s, std::span<const float> Q, std::span<const float> K, std::span<const float> V,
                  std::span<const float> dO) {
  const Forward f = forward(s, Q, K, V);
  Backward r;
  r.score_magnitude = f.score_magnitude;
  r.delta.assign(at(lse_size(s)), 0.0);
  r.dQ.assign(at(q_size(s)), 0.0);
  r.dK.assign(at(kv_size(s)), 0.0);
  r.dV.assign(at(kv_size(s)), 0.0);
  std::vector<double> delta_terms(r.delta.size()), dQ_terms(r.dQ.size()), dK_terms(r.dK.size()), dV_terms(r.dV.size());
  const auto add = [](std::vector<double>& sum, std::vector<double>& terms, std::int64_t i, double term, double size) {
    sum[at(i)] += term;
    terms[at(i)] += std::abs(size);
  };
  for_each_row(s, [&](std::int64_t row, std::int64_t, std::int64_t q0, std::int64_t k0) {
    for (std::int64_t h = 0; h < s.head_dim; ++h) {
      const double term = static_cast<double>(dO[at(q0 + h)]) * f.O[at(q0 + h)];
      add(r.delta, delta_terms, row, term, term);
    }
    for (std::int64_t j = 0; j < s.seqlen_k; ++j) {
      const double p = f.P[at(row * s.seqlen_k + j)];
      if (p == 0) continue;
      const std::int64_t kj = k0 + j * s.head_dim;
      double dP = 0, dP_terms = 0;
      for (std::int64_t h = 0; h < s.head_dim; ++h) {
        const double term = static_cast<double>(dO[at(q0 + h)]) * static_cast<double>(V[at(kj + h)]);
        dP += term;
        dP_terms += std::abs(term);
      }
      const double dS = s.scale * p * (dP - r.delta[at(row)]);
      const double dS_terms = s.scale * p * (dP_terms + delta_terms[at(row)]);
      for (std::int64_t h = 0; h < s.head_dim; ++h) {
        const double g = dO[at(q0 + h)], q = Q[at(q0 + h)], k = K[at(kj + h)];
        add(r.dV, dV_terms, kj + h, p * g, p * g);
        add(r.dQ, dQ_terms, q0 + h, dS * k, dS_terms * k);
        add(r.dK, dK_terms, kj + h, dS * q, dS_terms * q);
      }
    }
  });
  const auto largest = [](const std::vector<double>& v) {
    return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
  };
  r.delta_magnitude = largest(delta_terms);
  r.dQ_magnitude = largest(dQ_terms);
  r.dK_magnitude = largest(dK_terms);
  r.dV_magnitude = largest(dV_terms);
  return r;
}

double softmax_tolerance(double score_magnitude, std::int64_t n, std::int64_t head_dim) {
  const double eps = std::numeric_limits<float>::epsilon();
  return eps *
         ((4 + std::sqrt(static_cast<double>(head_dim))) * score_magnitude + 2 * std::sqrt(static_cast<double>(n)) + 8);
}
double output_tolerance(const AttentionShape& s, const Forward& truth) {
  return lse_tolerance(s, truth) * truth.value_magnitude;
}
double lse_tolerance(const AttentionShape& s, const Forward& truth) {
  return softmax_tolerance(truth.score_magnitude, s.seqlen_k, s.head_dim);
}

std::string derivation(double score_magnitude, std::int64_t n, std::int64_t head_dim, double factor) {
  std::ostringstream text;
  text.precision(3);
  text << "; tolerance = 2^-23 ((4 + sqrt(" << head_dim << ")) " << score_magnitude << " + 2 sqrt(" << n << ") + 8)";
  if (factor != 1) text << " " << factor;
  text << ", derived in tests/support/oracle.h";
  return text.str();
}
std::string derivation(const AttentionShape& s, const Forward& truth, bool of_output) {
  return derivation(truth.score_magnitude, s.seqlen_k, s.head_dim, of_output ? truth.value_magnitude : 1);
}

static std::int64_t gradient_terms(const AttentionShape& s) {
  return s.seqlen_k + s.q_heads / s.kv_heads * s.seqlen_q + s.head_dim;
}
double gradient_tolerance(const AttentionShape& s, const Backward& truth) {
  return softmax_tolerance(truth.score_magnitude, gradient_terms(s), s.head_dim);
}
std::string derivation(const AttentionShape& s, const Backward& truth, double magnitude) {
  return derivation(truth.score_magnitude, gradient_terms(s), s.head_dim, magnitude);
}

Row softmax_row(std::span<const float> scores, std::span<const float> values) {
  Row r;
  const std::size_t dim = scores.empty() ? 0 : values.size() / scores.size();
  r.out.assign(dim, 0.0);
  double max = -kInf, sum = 0;
  for (const float score : scores) max = std::max(max, static_cast<double>(score));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (static_cast<double>(scores[j]) == -kInf) continue;
    r.score_magnitude = std::max(r.score_magnitude, std::abs(static_cast<double>(scores[j])));
    const double p = std::exp(static_cast<double>(scores[j]) - max);
    sum += p;
    for (std::size_t h = 0; h < dim; ++h) {
      const double v = values[j * dim + h];
      r.out[h] += p * v;
      r.value_magnitude = std::max(r.value_magnitude, std::abs(v));
    }
  }
  if (sum > 0)
    for (double& o : r.out) o /= sum;
  r.lse = max + std::log(sum);
  return r;
}

}  // namespace nanolm::oracle
