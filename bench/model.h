// What the lessons predict: places on the roofline, the ratio of naive to tiled, the growth of the score matrix.
// Each is a JSON value; where a lesson is not written, an object with the one key "needs" and what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host.h"

namespace nanolm {

std::string quoted(const std::string& text);
std::string number(double value);  // null for NaN and infinities, which JSON does not have
std::string list(const std::vector<std::string>& values);
std::string object(const std::vector<std::pair<std::string, std::string>>& members);

// The value, or {"needs": "01_roofline", "because": "exercises/01_roofline.cpp:12: ..."}.
std::string from_lesson(const std::string& lesson, const std::function<std::string()>& value);

// A row for each device and one for this machine, each with the same kernels placed on it.
std::string roofline_json(const Host& host, double seqlen, double head_dim);

// Time bounds of lesson 01 for one head without a mask, fp32, on this machine.
std::string predictions_json(const Host& host, const std::vector<std::int64_t>& seqlens, double head_dim);

// 32 heads of head_dim 128 in fp16, up to a context of 131072.
std::string growth_json();

}  // namespace nanolm
