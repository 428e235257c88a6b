// Roofline: what a computation costs, and which of the two roofs it hits (notes/01_roofline.md).
#include <algorithm>

#include "nanolm/roofline.h"
#include "nanolm/todo.h"

namespace nanolm {

Cost matmul_cost(double m, double n, double k, double bytes_per_element) {
  check_counts({m, n, k, bytes_per_element});
  return {2 * m * n * k, bytes_per_element * (m * k + k * n + m * n)};
}

Cost unary_cost(double n, double bytes_per_element) {
  check_counts({n, bytes_per_element});
  return {n, bytes_per_element * 2 * n};
}

Cost binary_cost(double n, double bytes_per_element) {
  check_counts({n, bytes_per_element});
  return {n, bytes_per_element * 3 * n};
}

Cost chain_cost(double ops, double n, double bytes_per_element, double extra_inputs) {
  check_counts({ops, n, bytes_per_element, extra_inputs});
  return {ops * n, bytes_per_element * (2 * ops + extra_inputs) * n};
}

Cost fused_chain_cost(double ops, double n, double bytes_per_element, double extra_inputs) {
  check_counts({ops, n, bytes_per_element, extra_inputs});
  return {ops * n, bytes_per_element * (2 + extra_inputs) * n};
}

Cost naive_attention_cost(double seqlen, double head_dim, double bytes_per_element) {
  check_counts({seqlen, head_dim, bytes_per_element});
  const double matrix = seqlen * seqlen, operand = seqlen * head_dim;
  const double elements = (2 * operand + matrix)           // Q K^T: reads Q and K, writes S
                          + 2 * matrix                     // softmax: reads S, writes P
                          + (matrix + operand + operand);  // P V: reads P and V, writes O
  return {4 * matrix * head_dim, bytes_per_element * elements};
}

Cost flash_attention_cost(double seqlen, double head_dim, double bytes_per_element) {
  check_counts({seqlen, head_dim, bytes_per_element});
  return {4 * seqlen * seqlen * head_dim, bytes_per_element * 4 * seqlen * head_dim};
}

double intensity(const Cost& cost) {
  check_cost(cost);
  return cost.flop / cost.bytes;
}

double ridge(const Machine& machine) {
  check_machine(machine);
  return machine.flop_per_s / machine.bytes_per_s;
}

double attainable_flop_per_s(const Cost& cost, const Machine& machine) {
  check_cost(cost);
  check_machine(machine);
  return std::min(machine.flop_per_s, cost.flop / cost.bytes * machine.bytes_per_s);
}

double time_bound_s(const Cost& cost, const Machine& machine) {
  check_counts({cost.flop, cost.bytes});
  check_machine(machine);
  return std::max(cost.flop / machine.flop_per_s, cost.bytes / machine.bytes_per_s);
}

Bound bound_by(const Cost& cost, const Machine& machine) {
  check_cost(cost);
  check_machine(machine);
  const bool below = cost.flop / cost.bytes < machine.flop_per_s / machine.bytes_per_s;
  return below ? Bound::kMemory : Bound::kCompute;
}

}  // namespace nanolm
