// Critical batch: tokens that share one reading of the weights, and room for their caches (notes/02_critical_batch.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "nanolm/critical_batch.h"
#include "nanolm/todo.h"

namespace nanolm {

double critical_batch(const Machine& machine, double bytes_per_weight) {
  check_critical_batch(machine, bytes_per_weight);
  // TODO: the B at which reading n weights and 2 n B FLOP take equal time. About 1 line.
  todo();
  // end
}

double prefill_tokens(double sequences, double prompt_length) {
  check_counts({sequences, prompt_length});
  // TODO: every token of every prompt passes at once. About 1 line.
  todo();
  // end
}

double decode_tokens(double sequences) {
  check_counts({sequences});
  // TODO: a sequence gets one token a pass. About 1 line.
  todo();
  // end
}

double speculative_tokens(double sequences, double gamma) {
  check_counts({sequences, gamma});
  // TODO: each sequence checks its drafted tokens and computes one more. About 1 line.
  todo();
  // end
}

double kv_cache_bytes_per_token(double layers, double kv_heads, double head_dim, double bytes_per_element) {
  check_counts({layers, kv_heads, head_dim, bytes_per_element});
  // TODO: a key and a value for each kv head of each layer. About 1 line.
  todo();
  // end
}

std::int64_t sequences_that_fit(double memory_bytes, double weight_bytes, double kv_bytes_per_token, double context) {
  check_capacity(memory_bytes, weight_bytes, kv_bytes_per_token, context);
  // TODO: divide what the weights leave by the cache of one sequence. About 2 lines.
  todo();
  // end
}

double exact_critical_batch(const Machine& machine, double in_features, double out_features, double bytes_per_weight,
                            double bytes_per_activation) {
  check_layer(machine, in_features, out_features, bytes_per_weight, bytes_per_activation);
  // TODO: solve the header's equation for B; not every layer has a solution. About 6 lines.
  todo();
  // end
}

double decode_step_time_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                          double kv_bytes_per_sequence) {
  check_decode_step(machine, weights, bytes_per_weight, sequences, kv_bytes_per_sequence);
  // TODO: the longer of the arithmetic and the reading of weights and caches. About 3 lines.
  todo();
  // end
}

double decode_tokens_per_s(const Machine& machine, double weights, double bytes_per_weight, double sequences,
                           double kv_bytes_per_sequence) {
  check_decode_step(machine, weights, bytes_per_weight, sequences, kv_bytes_per_sequence);
  // TODO: tokens of a step, over its time. About 3 lines.
  todo();
  // end
}

}  // namespace nanolm
