#include "model.h"

#include <cmath>
#include <cstdio>
#include <sstream>

#include "nanolm/naive_attention.h"
#include "nanolm/roofline.h"
#include "nanolm/todo.h"

namespace nanolm {

namespace {

struct Kernel {
  std::string name, shape;
  Cost cost;
};

// One query of each of q_heads heads against a cache of seqlen keys and values: every query head works on the cache
// that its group shares, which is read once.
Cost decode_cost(double q_heads, double kv_heads, double seqlen, double head_dim, double bytes_per_element) {
  return {4 * q_heads * seqlen * head_dim, 2 * (kv_heads * seqlen + q_heads) * head_dim * bytes_per_element};
}

std::string count(double value) { return std::to_string(static_cast<std::int64_t>(value)); }

std::vector<Kernel> kernels(double seqlen, double head_dim, double bytes_per_element) {
  const std::string attention = "S = " + count(seqlen) + ", H = " + count(head_dim);
  return {{"elementwise", "z = x + y", binary_cost(1 << 26, bytes_per_element)},
          {"decode", "32 heads on 8 of the cache, S = 8192, H = 128", decode_cost(32, 8, 8192, 128, bytes_per_element)},
          {"naive", attention, naive_attention_cost(seqlen, head_dim, bytes_per_element)},
          {"flash", attention, flash_attention_cost(seqlen, head_dim, bytes_per_element)},
          {"matmul", "m = n = k = 4096", matmul_cost(4096, 4096, 4096, bytes_per_element)}};
}

std::string row(const std::string& name, const std::string& format, double bytes_per_element, const Machine& machine,
                double seqlen, double head_dim, const std::string& source) {
  std::vector<std::string> points;
  for (const Kernel& k : kernels(seqlen, head_dim, bytes_per_element))
    points.push_back(object({{"name", quoted(k.name)},
                             {"shape", quoted(k.shape)},
                             {"intensity", number(intensity(k.cost))},
                             {"attainable_flop_per_s", number(attainable_flop_per_s(k.cost, machine))},
                             {"bound", quoted(bound_by(k.cost, machine) == Bound::kMemory ? "memory" : "compute")}}));
  return object({{"name", quoted(name)},
                 {"format", quoted(format)},
                 {"flop_per_s", number(machine.flop_per_s)},
                 {"bytes_per_s", number(machine.bytes_per_s)},
                 {"ridge", number(ridge(machine))},
                 {"source", quoted(source)},
                 {"points", list(points)}});
}

// The 16-bit format: bf16, or fp16 where there is no bf16.
Format half_format(const Device& device) {
  for (const Peak& p : device.peaks)
    if (p.format == Format::kBf16) return Format::kBf16;
  return Format::kFp16;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    }
  }
  return out + '"';
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::ostringstream out;
  out.precision(17);
  out << value;
  return out.str();
}

std::string list(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + value;
  return "[" + out + "]";
}

std::string object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out;
  for (const auto& [key, value] : members) out += (out.empty() ? "" : ", ") + quoted(key) + ": " + value;
  return "{" + out + "}";
}

std::string from_lesson(const std::string& lesson, const std::function<std::string()>& value) {
  try {
    return value();
  } catch (const std::exception& e) {  // NotImplemented, or a wrong answer that throws
    return object({{"needs", quoted(lesson)}, {"because", quoted(e.what())}});
  }
}

std::string roofline_json(const Host& host, double seqlen, double head_dim) {
  return from_lesson("01_roofline", [&] {
    std::vector<std::string> rows;
    for (const Device& d : devices()) {
      const Format format = half_format(d);
      rows.push_back(row(std::string(d.name), std::string(name(format)), 2, machine(d, format), seqlen, head_dim,
                         std::string(d.source)));
    }
    rows.push_back(row("host", "fp32", 4, {host.vector_flop_per_s, host.bytes_per_s}, seqlen, head_dim,
                       "measured here, one thread: " + host.cpu));
    return list(rows);
  });
}

std::string predictions_json(const Host& host, const std::vector<std::int64_t>& seqlens, double head_dim) {
  return from_lesson("01_roofline", [&] {
    const Machine here{host.vector_flop_per_s, host.bytes_per_s};
    std::vector<std::string> rows;
    for (const std::int64_t s : seqlens) {
      const Cost naive = naive_attention_cost(static_cast<double>(s), head_dim, 4);
      const Cost flash = flash_attention_cost(static_cast<double>(s), head_dim, 4);
      rows.push_back(object({{"seqlen", count(static_cast<double>(s))},
                             {"flop", number(naive.flop)},
                             {"naive_intensity", number(intensity(naive))},
                             {"flash_intensity", number(intensity(flash))},
                             {"ratio", number(time_bound_s(naive, here) / time_bound_s(flash, here))}}));
    }
    return list(rows);
  });
}

std::string growth_json() {
  return from_lesson("04_naive_attention", [] {
    constexpr double kHeads = 32, kHeadDim = 128, kFp16 = 2, kFp32 = 4;
    std::vector<std::string> rows;
    for (double s = 1024; s <= 131072; s *= 2)
      rows.push_back(object({{"seqlen", number(s)},
                             {"score_matrix_bytes", number(score_matrix_bytes(1, kHeads, s, kFp16))},
                             {"O_bytes", number(kHeads * s * kHeadDim * kFp16)},
                             {"lse_bytes", number(kHeads * s * kFp32)}}));
    return object({{"heads", number(kHeads)}, {"head_dim", number(kHeadDim)}, {"rows", list(rows)}});
  });
}

}  // namespace nanolm
