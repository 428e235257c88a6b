#include "support/data.h"

#include <cmath>
#include <cstdlib>

namespace nanolm {

std::mt19937& rng() {
  static std::mt19937 generator = [] {
    const char* seed = std::getenv("NANOLM_SEED");
    return std::mt19937(seed ? static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10)) : 13u);
  }();
  return generator;
}

void reseed() {
  static const std::mt19937 first = rng();
  rng() = first;
}

std::vector<float> normal(std::int64_t size, float deviation) {
  std::normal_distribution<float> distribution(0.0f, deviation);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& v : values) v = distribution(rng());
  return values;
}

std::string name(Scores scores) {
  switch (scores) {
    case Scores::kNormal:
      return "normal scores";
    case Scores::kLarge:
      return "large scores";
    case Scores::kGrowing:
      return "scores that grow with the key";
    case Scores::kLow:
      return "scores all below -87";
  }
  return {};
}

AttentionData attention_data(const AttentionShape& s, Scores scores) {
  AttentionData data{normal(q_size(s)), normal(kv_size(s)), normal(kv_size(s))};
  if (scores == Scores::kLarge)
    for (float& q : data.Q) q *= 16.0f;
  if (scores != Scores::kGrowing && scores != Scores::kLow) return data;
  // The first component carries the regime: with q = 1, its share of the score is scale * k.
  const float scale = s.scale;
  for (std::size_t i = 0; i < data.Q.size(); i += static_cast<std::size_t>(s.head_dim)) data.Q[i] = 1.0f;
  for (std::int64_t row = 0; row < s.batch * s.kv_heads * s.seqlen_k; ++row) {
    const auto j = static_cast<float>(row % s.seqlen_k);
    float& k = data.K[static_cast<std::size_t>(row * s.head_dim)];
    // 120 over the whole row overflows exp without a maximum; noise of a few units keeps the order from being strict.
    if (scores == Scores::kGrowing) k = (120.0f * j / static_cast<float>(s.seqlen_k) + k) / scale;
    if (scores == Scores::kLow) k = (k - 120.0f) / scale;
  }
  return data;
}

std::string name(const AttentionShape& s) {
  return "batch " + std::to_string(s.batch) + " heads " + std::to_string(s.q_heads) + "/" + std::to_string(s.kv_heads) +
         " seqlen " + std::to_string(s.seqlen_q) + "/" + std::to_string(s.seqlen_k) + " head_dim " +
         std::to_string(s.head_dim) + (s.causal ? " causal" : "");
}

std::vector<AttentionShape> attention_shapes(bool grouped) {
  struct Sizes {
    std::int64_t batch, kv_heads, group, seqlen_q, seqlen_k, head_dim;
  };
  const Sizes plain[] = {{1, 1, 1, 1, 1, 1},    {2, 3, 1, 5, 7, 4},     {3, 2, 1, 15, 16, 20}, {2, 3, 1, 17, 33, 40},
                         {1, 2, 1, 64, 63, 3},  {2, 1, 1, 65, 129, 64}, {1, 3, 1, 113, 97, 8}, {3, 2, 1, 1, 65, 24},
                         {2, 3, 1, 70, 1, 128}, {1, 2, 1, 6, 0, 5}};
  const Sizes groups[] = {{2, 1, 3, 5, 7, 4}, {2, 3, 2, 17, 33, 20}, {1, 2, 6, 31, 65, 40}, {3, 2, 4, 33, 19, 3}};
  std::vector<AttentionShape> shapes;
  const auto add = [&shapes](const Sizes& z) {
    for (const bool causal : {false, true})
      shapes.push_back({z.batch, z.kv_heads * z.group, z.kv_heads, z.seqlen_q, z.seqlen_k, z.head_dim,
                        1.0f / std::sqrt(static_cast<float>(z.head_dim)), causal});
  };
  if (grouped)
    for (const Sizes& z : groups) add(z);
  else
    for (const Sizes& z : plain) add(z);
  return shapes;
}

}  // namespace nanolm
