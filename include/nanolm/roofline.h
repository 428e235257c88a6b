// Lesson 01: arithmetic intensity and the roofline.
//
//   intensity I = FLOP / bytes             ridge = P / W          P: FLOP/s, W: bytes/s of main memory
//   attainable = min(P, I * W)             time >= max(FLOP / P, bytes / W)
//
// Costs count main memory only: each operand is read or written once, b bytes an element. Counts are double, exact up
// to 2^53. A multiply-add is 2 FLOP. Error bound: relative 1e-9.
// Throws std::invalid_argument: a count that is negative, NaN or infinite; a rate that is not positive and finite; a
// cost without bytes where they divide. Devices and their rates, Machine{flop_per_s, bytes_per_s}: nanolm/devices.h.
// Source: Williams, Waterman & Patterson 2009, "Roofline"; Dao et al. 2022, section 3.2.
#pragma once

#include "nanolm/devices.h"

namespace nanolm {

struct Cost {
  double flop = 0;
  double bytes = 0;
};

// C[m, n] = A[m, k] B[k, n].
Cost matmul_cost(double m, double n, double k, double bytes_per_element);

// One operation for each of n elements, with one operand (y = f(x)) or two (z = x + y).
Cost unary_cost(double n, double bytes_per_element);
Cost binary_cost(double n, double bytes_per_element);

// A chain of `ops` elementwise operations on n elements: one kernel for each operation, or all of them fused into one.
// extra_inputs of the operations have a second operand (a residual, a mask), also of n elements, read once either way.
Cost chain_cost(double ops, double n, double bytes_per_element, double extra_inputs = 0);
Cost fused_chain_cost(double ops, double n, double bytes_per_element, double extra_inputs = 0);

// Attention of one head with S = seqlen tokens, three kernels, no mask: S x S scores are written, read and written by
// softmax, and read. FLOP of the two matmuls only: softmax adds 5 S^2, about 1 % at head_dim 128.
Cost naive_attention_cost(double seqlen, double head_dim, double bytes_per_element);

// The same attention when the scores never leave the chip: Q, K, V and O move once.
Cost flash_attention_cost(double seqlen, double head_dim, double bytes_per_element);

// FLOP per byte.
double intensity(const Cost& cost);
double ridge(const Machine& machine);
double attainable_flop_per_s(const Cost& cost, const Machine& machine);
// A lower bound: arithmetic and traffic overlap at best, so the slower of the two remains. A cost without bytes is
// fine.
double time_bound_s(const Cost& cost, const Machine& machine);

enum class Bound { kMemory, kCompute };
// At the ridge itself both take the same time; that counts as kCompute.
Bound bound_by(const Cost& cost, const Machine& machine);

// Given: the checks that the functions above begin with.
inline void check_cost(const Cost& cost) {
  check_counts({cost.flop, cost.bytes});
  require(cost.bytes > 0, "a cost without bytes has no intensity, got bytes = ", cost.bytes);
}

}  // namespace nanolm
