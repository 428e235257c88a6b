// Roofline: what a computation costs, and which of the two roofs it hits (notes/01_roofline.md).
#include <algorithm>

#include "nanolm/roofline.h"
#include "nanolm/todo.h"

namespace nanolm {

Cost matmul_cost(double m, double n, double k, double bytes_per_element) {
  check_counts({m, n, k, bytes_per_element});
  // TODO: count the multiply-adds, and the elements of A, B and C. About 1 line.
  todo();
  // end
}

Cost unary_cost(double n, double bytes_per_element) {
  check_counts({n, bytes_per_element});
  // TODO: one operation an element; x is read and y written. About 1 line.
  todo();
  // end
}

Cost binary_cost(double n, double bytes_per_element) {
  check_counts({n, bytes_per_element});
  // TODO: one operation an element; x and y are read and z written. About 1 line.
  todo();
  // end
}

Cost chain_cost(double ops, double n, double bytes_per_element, double extra_inputs) {
  check_counts({ops, n, bytes_per_element, extra_inputs});
  // TODO: each operation reads the tensor and writes it; the extra inputs are read. About 1 line.
  todo();
  // end
}

Cost fused_chain_cost(double ops, double n, double bytes_per_element, double extra_inputs) {
  check_counts({ops, n, bytes_per_element, extra_inputs});
  // TODO: only the first input, the last output and the extra inputs move. About 1 line.
  todo();
  // end
}

Cost naive_attention_cost(double seqlen, double head_dim, double bytes_per_element) {
  check_counts({seqlen, head_dim, bytes_per_element});
  // TODO: count FLOP and elements of Q K^T, of softmax (no FLOP) and of P V, and add them. About 5 lines.
  todo();
  // end
}

Cost flash_attention_cost(double seqlen, double head_dim, double bytes_per_element) {
  check_counts({seqlen, head_dim, bytes_per_element});
  // TODO: the FLOP of naive attention, the bytes of Q, K, V and O. About 1 line.
  todo();
  // end
}

double intensity(const Cost& cost) {
  check_cost(cost);
  // TODO: FLOP for each byte. About 1 line.
  todo();
  // end
}

double ridge(const Machine& machine) {
  check_machine(machine);
  // TODO: the intensity at which arithmetic and traffic take equal time. About 1 line.
  todo();
  // end
}

double attainable_flop_per_s(const Cost& cost, const Machine& machine) {
  check_cost(cost);
  check_machine(machine);
  // TODO: the lower of the two roofs at this cost's intensity. About 1 line.
  todo();
  // end
}

double time_bound_s(const Cost& cost, const Machine& machine) {
  check_counts({cost.flop, cost.bytes});
  check_machine(machine);
  // TODO: the longer of the two times. About 1 line.
  todo();
  // end
}

Bound bound_by(const Cost& cost, const Machine& machine) {
  check_cost(cost);
  check_machine(machine);
  // TODO: compare the cost's intensity with the ridge. About 2 lines.
  todo();
  // end
}

}  // namespace nanolm
