// What this machine is and what one thread of it reaches: the roofs for `--device-row host`.
#pragma once

#include <string>

namespace nanolm {

struct Host {
  std::string cpu;
  double vector_flop_per_s = 0;  // fp32 multiply-adds with these compiler flags; a multiply-add is 2 FLOP
  double native_flop_per_s = 0;  // with lesson 10's instructions
  double scalar_flop_per_s = 0;  // the same loop without vector instructions
  double bytes_per_s = 0;        // STREAM's triad, a = b + s * c: 3 arrays counted, the read for ownership is not
};

std::string cpu_name();

// Bytes that can be allocated now: the system's estimate, or the control group's limit where that is lower. +inf where
// the system does not tell.
double available_bytes();

// Takes about a second. The best of a few runs each: a roof is what the machine can do.
Host measure_host();

}  // namespace nanolm
