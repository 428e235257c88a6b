// Lesson 02: how many tokens share one reading of the weights, and how many sequences have room.
//
// A pass of B tokens through n weights reads n b bytes and does 2 n B FLOP. Both take equal time at
//   B* = P b / (2 W) tokens          P: FLOP/s, W: bytes/s of main memory, b: bytes a weight is stored in
// Below B* a pass costs one reading of the weights and a further token is nearly free; above, each adds 2 n / P.
//
// Counts are double; rates and sizes are decimal. Error bound: relative 1e-9; whole numbers are exact.
// Throws std::invalid_argument: a count that is negative, NaN or infinite; 0 where it divides; a machine whose rates
// are not positive and finite. Source: kipply, "Transformer inference arithmetic", 2022; Austin et al. 2025, "How to
// scale your model".
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "nanolm/devices.h"

namespace nanolm {

// P is the rate of the arithmetic, which need not be in the weights' format: int8 weights may feed bf16 units.
double critical_batch(const Machine& machine, double bytes_per_weight);

// Tokens in one pass: all of the prompts; one for each sequence; or a draft of gamma tokens and the one after it.
double prefill_tokens(double sequences, double prompt_length);
double decode_tokens(double sequences);
double speculative_tokens(double sequences, double gamma);

// Keys and values of one token in all layers. 131072 for Llama-3-8B in bf16: 32 layers, 8 kv heads, head_dim 128.
double kv_cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bytes_per_element);

// Whole sequences of `context` tokens whose caches fit beside the weights; 0 when the weights alone do not fit.
std::int64_t sequences_that_fit(double memory_bytes, double weight_bytes, double kv_bytes_per_token, double context);

// Beyond the week's hours -----------------------------------------------------------------------------------------

// B* of one layer [in_features, out_features] when its activations, read and written once, count too: the B with
//   2 B D F / (b_a B (D + F) + b_w D F) = P / W
// +inf when no batch reaches the ridge. At least critical_batch, which it nears as D and F grow.
double exact_critical_batch(const Machine& machine, double in_features, double out_features, double bytes_per_weight,
                            double bytes_per_activation);

// Lower bound of one decode step: max(2 n B / P, (n b + B kv) / W) for B sequences, n weights, kv bytes of cache a
// sequence. The FLOP of attention are left out: its few FLOP a byte stay far below the ridge at any B.
double decode_step_time_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                          double kv_bytes_per_sequence);
// All sequences together: B tokens a step.
double decode_tokens_per_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                           double kv_bytes_per_sequence);

// Given: the checks that the functions above begin with.
inline void check_positive(const char* name, double value) {
  require(std::isfinite(value) && value > 0, name, " must be positive and finite, got ", value);
}
inline void check_critical_batch(const Machine& machine, double bytes_per_weight) {
  check_machine(machine);
  check_positive("bytes_per_weight", bytes_per_weight);
}
inline void check_capacity(double memory_bytes, double weight_bytes, double kv_bytes_per_token, double context) {
  check_counts({memory_bytes, weight_bytes});
  check_positive("kv_bytes_per_token", kv_bytes_per_token);
  check_positive("context", context);
  require(memory_bytes / (kv_bytes_per_token * context) < 0x1p63,
          "the number of sequences does not fit 64 bits: ", memory_bytes, " bytes of memory, ", kv_bytes_per_token,
          " bytes a token, context ", context);
}
inline void check_layer(const Machine& machine, double in_features, double out_features, double bytes_per_weight,
                        double bytes_per_activation) {
  check_critical_batch(machine, bytes_per_weight);
  check_positive("in_features", in_features);
  check_positive("out_features", out_features);
  check_positive("bytes_per_activation", bytes_per_activation);
}
inline void check_decode_step(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                              double kv_bytes_per_sequence) {
  check_critical_batch(machine, bytes_per_weight);
  check_positive("weights", weights);
  check_counts({sequences, kv_bytes_per_sequence});
}

}  // namespace nanolm
