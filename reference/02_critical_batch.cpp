// Critical batch: tokens that share one reading of the weights, and room for their caches (notes/02_critical_batch.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "nanolm/critical_batch.h"
#include "nanolm/todo.h"

namespace nanolm {

double critical_batch(const Machine& machine, double bytes_per_weight) {
  check_critical_batch(machine, bytes_per_weight);
  return machine.flop_per_s * bytes_per_weight / (2 * machine.bytes_per_s);
}

double prefill_tokens(double sequences, double prompt_length) {
  check_counts({sequences, prompt_length});
  return sequences * prompt_length;
}

double decode_tokens(double sequences) {
  check_counts({sequences});
  return sequences;
}

double speculative_tokens(double sequences, double gamma) {
  check_counts({sequences, gamma});
  return sequences * (gamma + 1);
}

double kv_cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bytes_per_element) {
  check_counts({layers, kv_heads, head_dim, bytes_per_element});
  return 2 * layers * kv_heads * head_dim * bytes_per_element;
}

std::int64_t sequences_that_fit(double memory_bytes, double weight_bytes, double kv_bytes_per_token, double context) {
  check_capacity(memory_bytes, weight_bytes, kv_bytes_per_token, context);
  if (weight_bytes > memory_bytes) return 0;
  return static_cast<std::int64_t>(std::floor((memory_bytes - weight_bytes) / (kv_bytes_per_token * context)));
}

double exact_critical_batch(const Machine& machine, double in_features, double out_features, double bytes_per_weight,
                            double bytes_per_activation) {
  check_layer(machine, in_features, out_features, bytes_per_weight, bytes_per_activation);
  const double ridge = machine.flop_per_s / machine.bytes_per_s;
  const double weights = in_features * out_features;
  // B (2 D F - R b_a (D + F)) = R b_w D F. Per token: FLOP, less the FLOP that its own traffic would have paid for.
  const double gain = 2 * weights - ridge * bytes_per_activation * (in_features + out_features);
  if (gain <= 0) return std::numeric_limits<double>::infinity();
  return ridge * bytes_per_weight * weights / gain;
}

double decode_step_time_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                          double kv_bytes_per_sequence) {
  check_decode_step(machine, weights, bytes_per_weight, sequences, kv_bytes_per_sequence);
  const double flop = 2 * weights * sequences;
  const double bytes = weights * bytes_per_weight + sequences * kv_bytes_per_sequence;
  return std::max(flop / machine.flop_per_s, bytes / machine.bytes_per_s);
}

double decode_tokens_per_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                           double kv_bytes_per_sequence) {
  check_decode_step(machine, weights, bytes_per_weight, sequences, kv_bytes_per_sequence);
  const double flop = 2 * weights * sequences;
  const double bytes = weights * bytes_per_weight + sequences * kv_bytes_per_sequence;
  return sequences / std::max(flop / machine.flop_per_s, bytes / machine.bytes_per_s);
}

}  // namespace nanolm
