// Inputs that tell wrong kernels apart: ragged shapes, different data in each head, and scores in several regimes.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "nanolm/attention_shape.h"

namespace nanolm {

// Seeded by the environment variable NANOLM_SEED (default 13), so that a failure can be repeated.
std::mt19937& rng();
void reseed();  // back to the first number; tests/support/fresh_data.cpp does it before each test
std::vector<float> normal(std::int64_t size, float deviation = 1.0f);

enum class Scores {
  kNormal,   // about unit normal
  kLarge,    // 16 times that: exp overflows unless the maximum is subtracted
  kGrowing,  // grow with the key: the maximum moves in every tile
  kLow,      // all below -87: exp(s - 0) is 0, so a maximum that starts at 0 divides by 0
};
std::string name(Scores scores);

struct AttentionData {
  std::vector<float> Q, K, V;
};
AttentionData attention_data(const AttentionShape& shape, Scores scores);

// "batch 2 heads 4/2 seqlen 33/65 head_dim 20 causal", for SCOPED_TRACE.
std::string name(const AttentionShape& shape);

// Sizes pairwise different, ragged against tiles of 16, 32 and 64, with lengths 1, tile - 1, tile, tile + 1 and primes.
// Each comes causal and not; grouped asks for q_heads > kv_heads, else they are equal.
std::vector<AttentionShape> attention_shapes(bool grouped);

}  // namespace nanolm
