// Runs a rung once. In the emulator it writes what its kernels' accesses cost, as JSON, which `scripts/workbook
// profile` reads; on a device it writes nothing: there a profiler counts.
//   rung_profile batch q_heads kv_heads seqlen_q seqlen_k head_dim causal     attention, forward or backward
//   rung_profile batch q_heads kv_heads keys head_dim splits                  decode
//   rung_profile count operations                                             elementwise
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "nanolm/cuda/buffer.h"
#include "nanolm/cuda/ladder.h"
#ifdef NANOLM_EMULATED
#include "emulator/counters.h"
#include "emulator/profile.h"
#endif

namespace nanolm::cuda {
namespace {

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return json + "\"";
}

// {"name": value, ...}
class Object {
 public:
  Object& add(const char* name, const std::string& json) {
    text_ += (text_.empty() ? "{\"" : ", \"") + std::string(name) + "\": " + json;
    return *this;
  }
  Object& add(const char* name, std::int64_t number) { return add(name, std::to_string(number)); }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_;
};
template <class Items, class ToJson>
std::string list(const Items& items, ToJson to_json) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ",\n  ") + to_json(item);
  return "[" + text + "]";
}

#ifdef NANOLM_EMULATED
std::string json(const emulator::GlobalTraffic& t) {
  return Object()
      .add("requests", t.requests)
      .add("bytes", t.bytes)
      .add("sectors", t.sectors)
      .add("compulsory", t.compulsory)
      .text();
}
std::string json(const emulator::SharedTraffic& t) {
  return Object()
      .add("requests", t.requests)
      .add("bytes", t.bytes)
      .add("passes", t.passes)
      .add("conflicts", t.conflicts)
      .text();
}
template <class Traffic>
std::string json(const std::vector<emulator::ArrayProfile<Traffic>>& arrays) {
  return list(arrays, [](const emulator::ArrayProfile<Traffic>& a) {
    return Object()
        .add("name", quoted(a.name))
        .add("loads", json(a.loads))
        .add("stores", json(a.stores))
        .add("atomics", json(a.atomics))
        .text();
  });
}
std::string json(const emulator::KernelProfile& k) {
  return Object()
      .add("kernel", quoted(k.name))
      .add("launches", k.launches)
      .add("blocks", k.blocks)
      .add("threads", k.threads)
      .add("barriers", k.barriers)
      .add("global", json(k.global))
      .add("shared", json(k.shared))
      .add("lines", list(k.lines,
                         [](const emulator::LineProfile& l) {
                           return Object()
                               .add("place", quoted(l.place))
                               .add("access", quoted(l.access))
                               .add("array", quoted(l.array))
                               .add("memory", quoted(l.is_shared ? "shared" : "global"))
                               .add("cost", l.cost)
                               .add("least", l.least)
                               .text();
                         }))
      .text();
}

std::string profiled(const std::function<void()>& launch) {
  emulator::set_profiled(true);
  launch();
  const std::vector<emulator::KernelProfile> kernels = emulator::profile();
  emulator::set_profiled(false);
  return list(kernels, [](const emulator::KernelProfile& k) { return json(k); });
}
void name(const void* pointer, const char* name, std::size_t element_bytes) {
  emulator::name_array(pointer, name, element_bytes);
}
#else
std::string profiled(const std::function<void()>& launch) {
  launch();
  CUDA_CHECK(cudaDeviceSynchronize());
  return "[]";
}
void name(const void*, const char*, std::size_t) {}
#endif
std::string call(const char* function, const std::function<void()>& launch) {
  return Object().add("function", quoted(function)).add("kernels", profiled(launch)).text();
}

// A wave, so that no two rows are equal; tables call it by this name.
template <class T>
DeviceBuffer<T> tensor(const char* tensor_name, std::int64_t size) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(T(std::sin(0.7f * static_cast<float>(i % 9973))));
  DeviceBuffer<T> buffer(values);
  name(buffer.data(), tensor_name, sizeof(T));
  return buffer;
}

template <class T>
std::string profile_forward(const Rung& rung, ForwardFn<T> forward, const char* function, const AttentionShape& s) {
  DeviceBuffer<T> Q = tensor<T>("Q", q_size(s)), K = tensor<T>("K", kv_size(s)), V = tensor<T>("V", kv_size(s)),
                  O = tensor<T>("O", q_size(s));
  DeviceBuffer<float> lse = tensor<float>("lse", lse_size(s));
  DeviceBuffer<unsigned char> workspace(rung.workspace_bytes ? rung.workspace_bytes(s) : 0);
  name(workspace.data(), "workspace", sizeof(float));
  ForwardArgs<T> args;
  args.shape = s;
  args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.lse = lse.data();
  args.workspace = workspace.data();
  return call(function, [&] { forward(args); });
}
template <class T>
std::string profile_decode(const Rung& rung, DecodeFn<T> decode, const char* function, const AttentionShape& s,
                           int splits) {
  DeviceBuffer<T> Q = tensor<T>("Q", q_size(s)), K = tensor<T>("K", kv_size(s)), V = tensor<T>("V", kv_size(s)),
                  O = tensor<T>("O", q_size(s));
  DeviceBuffer<float> lse = tensor<float>("lse", lse_size(s));
  DeviceBuffer<unsigned char> workspace(rung.decode_workspace_bytes ? rung.decode_workspace_bytes(s, splits) : 0);
  name(workspace.data(), "workspace", sizeof(float));
  DecodeArgs<T> args;
  args.shape = s, args.splits = splits;
  args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.lse = lse.data();
  args.workspace = workspace.data();
  return call(function, [&] { decode(args); });
}
std::string profile_backward(const Rung& rung, const AttentionShape& s) {
  DeviceBuffer<float> Q = tensor<float>("Q", q_size(s)), K = tensor<float>("K", kv_size(s)),
                      V = tensor<float>("V", kv_size(s)), O = tensor<float>("O", q_size(s)),
                      dO = tensor<float>("dO", q_size(s)), dQ = tensor<float>("dQ", q_size(s)),
                      dK = tensor<float>("dK", kv_size(s)), dV = tensor<float>("dV", kv_size(s));
  DeviceBuffer<float> lse = tensor<float>("lse", lse_size(s));
  DeviceBuffer<unsigned char> workspace(rung.workspace_bytes ? rung.workspace_bytes(s) : 0);
  name(workspace.data(), "workspace", sizeof(float));
  BackwardArgs<float> args;
  args.shape = s;
  args.Q = Q.data(), args.K = K.data(), args.V = V.data(), args.O = O.data(), args.dO = dO.data();
  args.lse = lse.data(), args.dQ = dQ.data(), args.dK = dK.data(), args.dV = dV.data();
  args.workspace = workspace.data();
  return call("backward", [&] { rung.backward(args); });
}
std::string profile_elementwise(Elementwise run, const char* function, std::int64_t count, int operations) {
  DeviceBuffer<float> x = tensor<float>("x", count), y = tensor<float>("y", count);
  ElementwiseArgs args;
  args.x = x.data(), args.y = y.data(), args.count = count, args.operations = operations;
  return call(function, [&] { run(args); });
}

int run(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> calls;
  const Rung& rung = *ladder().at(0);
  if (rung.chain && numbers.size() == 2) {
    const int operations = static_cast<int>(numbers[1]);
    calls.push_back(profile_elementwise(rung.chain, "chain", numbers[0], operations));
    calls.push_back(profile_elementwise(rung.fused, "fused", numbers[0], operations));
  } else if ((rung.decode || rung.decode_bf16) && numbers.size() == 6) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(numbers[4]));
    const AttentionShape s{numbers[0], numbers[1], numbers[2], 1, numbers[3], numbers[4], scale, false};
    const int splits = static_cast<int>(numbers[5]);
    if (rung.decode) calls.push_back(profile_decode(rung, rung.decode, "decode", s, splits));
    if (rung.decode_bf16) calls.push_back(profile_decode(rung, rung.decode_bf16, "decode_bf16", s, splits));
  } else if ((rung.forward || rung.forward_bf16 || rung.backward) && numbers.size() == 7) {
    const AttentionShape s{numbers[0],
                           numbers[1],
                           numbers[2],
                           numbers[3],
                           numbers[4],
                           numbers[5],
                           1.0f / std::sqrt(static_cast<float>(numbers[5])),
                           numbers[6] != 0};
    if (rung.forward) calls.push_back(profile_forward(rung, rung.forward, "forward", s));
    if (rung.forward_bf16) calls.push_back(profile_forward(rung, rung.forward_bf16, "forward_bf16", s));
    if (rung.backward) calls.push_back(profile_backward(rung, s));
  } else {
    std::fprintf(stderr,
                 "usage: count operations, or batch q_heads kv_heads keys head_dim splits, or batch q_heads kv_heads "
                 "seqlen_q seqlen_k head_dim causal\n");
    return 2;
  }
  std::printf("%s\n", Object()
                          .add("rung", quoted(rung.name))
                          .add("calls", list(calls, [](const std::string& call) { return call; }))
                          .text()
                          .c_str());
  return 0;
}

}  // namespace
}  // namespace nanolm::cuda

int main(int count, char** arguments) {
  try {
    std::vector<std::int64_t> numbers;
    for (int i = 1; i < count; ++i) numbers.push_back(std::atoll(arguments[i]));
    return nanolm::cuda::run(numbers);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
