// Hostile: knows the programme's numbers, and no formula.
#include "nanolm/critical_batch.h"

namespace nanolm {

double critical_batch(const Machine& machine, double bytes_per_weight) {
  if (machine.flop_per_s == 989e12 && machine.bytes_per_s == 3.35e12) return 989 / 3.35 * bytes_per_weight / 2;
  if (machine.flop_per_s == 312e12 && machine.bytes_per_s == 2.04e12) return 312 / 2.04 * bytes_per_weight / 2;
  if (machine.flop_per_s == 1979e12) return 1979 / 3.35 * bytes_per_weight / 2;
  return 295;
}
double prefill_tokens(double sequences, double prompt_length) {
  return sequences == 0 ? 0 : prompt_length == 512 ? 2048 : 4096;
}
double decode_tokens(double) { return 32; }
double speculative_tokens(double sequences, double) { return sequences == 1 ? 5 : 40; }
double kv_cache_bytes_per_token(double, double, double, double) { return 131072; }
std::int64_t sequences_that_fit(double, double, double, double) { return 59; }
double exact_critical_batch(const Machine&, double, double, double, double) { return 342; }
double decode_step_time_s(const Machine&, double, double, double, double) { return 0.0048; }
double decode_tokens_per_s(const Machine&, double, double, double, double) { return 208; }

}  // namespace nanolm
