// What the reference lessons compute for the settings on standard input, for explore_test.py to compare with
// notes/explore/model.js. One setting a line, its fields apart by tabs; one line an answer: names and values.
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "nanolm/critical_batch.h"
#include "nanolm/decode_attention.h"
#include "nanolm/naive_attention.h"
#include "nanolm/roofline.h"
#include "nanolm/tiled_attention.h"

namespace {

using namespace nanolm;
using Values = std::map<std::string, double>;

Format format_named(const std::string& wanted) {
  for (const Format f : {Format::kFp32, Format::kTf32, Format::kFp16, Format::kBf16, Format::kFp8, Format::kInt8})
    if (name(f) == wanted) return f;
  require(false, "no format is named ", wanted);
  return Format::kFp32;
}

double bytes_of(Format format) {
  if (format == Format::kFp32 || format == Format::kTf32) return 4;
  return format == Format::kFp16 || format == Format::kBf16 ? 2 : 1;
}

void put_point(Values& out, const std::string& key, const Cost& cost, const Machine& m) {
  out[key + ".intensity"] = intensity(cost);
  out[key + ".attainable"] = attainable_flop_per_s(cost, m);
  out[key + ".share"] = attainable_flop_per_s(cost, m) / m.flop_per_s;
  out[key + ".compute_bound"] = bound_by(cost, m) == Bound::kCompute;
}

// The order of the fields is that of explore_test.py.
Values answer(const std::vector<std::string>& field) {
  std::size_t next = 0;
  const auto number = [&] { return std::stod(field.at(next++)); };
  const Device& d = device(field.at(next++));
  const Format arithmetic = format_named(field.at(next++));
  const std::string pass = field.at(next++);
  const double b = bytes_of(arithmetic), b_w = number(), b_c = number();
  const double S = number(), H = number(), N = number(), K = number(), batch = number(), B_r = number();
  const double D = number(), F = number(), L = number(), vocabulary = number();

  const Machine tensor = machine(d, arithmetic), vector = machine(d, Format::kFp32);
  const double M = d.sram_bytes_sm / b;
  const double B = pass == "prefill"       ? prefill_tokens(batch, S)
                   : pass == "speculation" ? speculative_tokens(batch, 4)
                                           : decode_tokens(batch);
  // Embeddings in and out, attention, MLP, norms.
  const double n =
      vocabulary * D + D * vocabulary + L * (D * N * H + N * H * D + 2 * (D * K * H)) + L * 3 * D * F + (2 * L + 1) * D;
  const double kv = kv_cache_bytes_per_token(L, K, H, b_c);
  Values out{{"P", tensor.flop_per_s},
             {"W", tensor.bytes_per_s},
             {"vector", vector.flop_per_s},
             {"memory", d.memory_bytes},
             {"M", M},
             {"B", B},
             {"n", n},
             {"kv", kv},
             {"ridge", ridge(tensor)},
             {"critical_batch", critical_batch(tensor, b_w)},
             {"exact_critical_batch", exact_critical_batch(tensor, D, F, b_w, b)},
             {"weight_bytes", n * b_w},
             {"sequences_that_fit", static_cast<double>(sequences_that_fit(d.memory_bytes, n * b_w, kv, S))},
             {"decode_step_s", decode_step_time_s(tensor, n, b_w, batch, kv * S)},
             {"decode_tokens_per_s", decode_tokens_per_s(tensor, n, b_w, batch, kv * S)},
             {"score_matrix_bytes", score_matrix_bytes(batch, N, S, b)},
             {"naive_traffic", naive_attention_cost(S, H, 1).bytes},
             {"flash1_traffic", flash1_traffic(S, H, M)},
             {"flash2_traffic", flash2_traffic(S, H, B_r)},
             {"ideal_traffic", ideal_traffic(S, H)},
             {"flash1_wins", flash1_wins(H, M)},
             {"decode_intensity_limit", decode_intensity_limit(N, K, b_c)},
             {"matmul_cost", matmul_cost(B, F, D, b).bytes}};
  // A matmul whose weights have another width than its activations.
  Cost layer = matmul_cost(B, F, D, b);
  layer.bytes += (b_w - b) * D * F;
  put_point(out, "matmul", layer, tensor);
  put_point(out, "add", binary_cost(B * D, b), vector);
  put_point(out, "softmax", fused_chain_cost(5, S * S, b), vector);
  put_point(out, "naive", naive_attention_cost(S, H, b), tensor);
  put_point(out, "ideal", flash_attention_cost(S, H, b), tensor);
  Cost flash2 = flash_attention_cost(S, H, b);
  flash2.bytes = b * flash2_traffic(S, H, B_r);
  put_point(out, "flash2", flash2, tensor);
  put_point(out, "decode", {quantized_cache_intensity(N, K, S, b, b_c), 1}, tensor);
  return out;
}

}  // namespace

int main() {
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> fields;
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, '\t');) fields.push_back(field);
    const char* gap = "";
    for (const auto& [key, value] : answer(fields)) {
      std::cout << gap << key << ' ' << value;
      gap = " ";
    }
    std::cout << '\n';
  }
}
