// half, as far as the rungs use it.
#pragma once

#include "cuda_runtime.h"
#include "emulator/narrow_float.h"

NANOLM_NARROW_FLOAT(__half, half_bits, from_half)
using half = __half;
struct alignas(4) __half2 {
  __half x, y;
};
using half2 = __half2;

inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline float __half2float(__half value) { return float(value); }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline float __low2float(__half2 v) { return float(v.x); }
inline float __high2float(__half2 v) { return float(v.y); }
