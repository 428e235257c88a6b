// The judge's end: a lesson's functions as calls to a worker that holds a student's library.
//
// remote(name, &function)(arguments...) is the whole of a function in the library that stands in for the student's.
// After a call that succeeded, the same function is called once more with other numbers (a twin), and what comes back
// is compared with the answers in reference/: a test with fixed inputs cannot be passed by a table of its results.
#pragma once

#include <cmath>
#include <optional>
#include <random>
#include <tuple>

#include "judge/wire.h"

namespace nanolm {
class TileLoader;
}

namespace nanolm::judge {

// What a test sees when the worker has ended, was stopped or does not keep to the protocol.
class WorkerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Answers what a worker asks during a call: reads the question, writes the answer. An exception is kept, and thrown
// again where the call was made, when the worker says that it came through.
using Ask = std::function<void(std::uint8_t number, Reader& question, Writer& answer)>;

// The one worker of this process. Started before main; the seed of the tests' data is in this process alone.
class Link {
 public:
  static Link& get();
  // Sends a call and answers questions until it returns. Throws WorkerLost.
  Reader call(const Writer& request, const Ask& ask);
  [[noreturn]] void raise(Status status, const std::string& text);
  // The answers' version of a function of this program, or null where there are none.
  void* answer(void* function);
  // A test does not pass where a twin was wrong. Said at the end: what the test itself finds comes first.
  void note_wrong_twin(const char* name);
  std::mt19937& rng() { return rng_; }

 private:
  Link();
  ~Link();
  Kind receive();
  [[noreturn]] void lose(const char* why);
  void stop_worker();
  std::int64_t resident_bytes(const char* field) const;

  int fd_ = -1, report_fd_ = -1;
  int child_ = -1;
  long worker_ = -1;
  std::string lost_, wrong_twin_;
  std::vector<char> body_;
  std::exception_ptr thrown_;
  void* answers_ = nullptr;
  std::mt19937 rng_;
  double deadline_ = 0;
};

std::int64_t twin_calls_left(const char* name);  // counts one off
void note_scratch(std::int64_t bytes);           // for ScratchMeter

// An argument, sent: spans and values as they are, a function as a mark that it is there.
template <class A>
void put_argument(Writer& out, A& argument) {
  using T = std::remove_cvref_t<A>;
  if constexpr (kIsSpan<T>)
    put_elements(out, argument);
  else if constexpr (kIsFunction<T>)
    put<bool>(out, static_cast<bool>(argument));
  else if constexpr (!std::is_same_v<T, TileLoader>)
    put<T>(out, argument);
}
// What the call changed comes back. D is the declared type of the parameter.
template <class D, class A>
void get_argument(Reader& in, A& argument) {
  using T = std::remove_cvref_t<D>;
  if constexpr (kIsSpan<T>) {
    if constexpr (!std::is_const_v<typename T::element_type>) get_elements(in, argument);
  } else if constexpr (std::is_lvalue_reference_v<D> && !std::is_const_v<std::remove_reference_t<D>> &&
                       !std::is_same_v<T, TileLoader>) {
    Code<T>::get(in, argument);
  }
}

// Twins: other numbers in place of an argument's. kNear and kMultiples leave zeros, NaN and infinities, so that masks
// and empty states stay what they are; kFresh replaces them too, so that a special case is not all that is looked at.
enum class Twin { kNear, kMultiples, kFresh };
class Jitter {
 public:
  Jitter(std::mt19937& rng, Twin twin, bool sizes) : rng_(rng), twin_(twin), sizes_(sizes) {}
  template <class T>
  void operator()(T& x) {
    if constexpr (HasFields<T>)
      std::apply([&](auto&... field) { ((*this)(field), ...); }, Fields<T>::of(x));
    else if constexpr (std::is_same_v<T, float>)
      x = twin_ == Twin::kFresh ? uniform(0.5f, 1.5f) : x * (1 + sign() * uniform(0.01f, 0.02f));
    else if constexpr (std::is_same_v<T, double>)
      number(x);
    else if constexpr (std::is_same_v<T, std::int64_t>) {
      if (sizes_) x += static_cast<std::int64_t>(rng_() % 7) - 3;
    } else if constexpr (requires { x.begin(); })
      for (auto& element : x) (*this)(element);
  }

 private:
  float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng_); }
  float sign() { return rng_() % 2 ? 1.0f : -1.0f; }
  void number(double& x) {
    if (x == 0 || !std::isfinite(x)) {
      if (twin_ == Twin::kFresh) x = static_cast<double>(1 + rng_() % 4);
    } else if (x != std::floor(x) || std::abs(x) > 0x1p50) {
      x *= 1 + sign() * std::uniform_real_distribution<double>(0.01, 0.02)(rng_);
    } else if (twin_ == Twin::kMultiples) {  // whole numbers of which one has to divide another
      x *= static_cast<double>(1 + rng_() % 4);
    } else {
      x += sign() * std::floor(std::uniform_real_distribution<double>(1, 2 + std::abs(x) / 50)(rng_));
    }
  }
  std::mt19937& rng_;
  Twin twin_;
  bool sizes_;
};

// Whether a twin's results agree: loosely, since the tests have judged the accuracy already.
template <class T>
bool agree(const T& mine, const T& right, double scale = 0) {
  if constexpr (HasFields<T>) {
    return std::apply(
        [&](const auto&... a) {
          return std::apply([&](const auto&... b) { return (agree(a, b) && ...); }, Fields<T>::of(right));
        },
        Fields<T>::of(mine));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (mine == right || (std::isnan(mine) && std::isnan(right))) return true;
    const double relative = std::is_same_v<T, float> ? 3e-3 : 1e-6;
    return std::abs(double{mine} - double{right}) <= relative * std::max(scale, std::abs(double{right}));
  } else if constexpr (requires { mine.begin(); }) {
    if (mine.size() != right.size()) return false;
    using E = std::remove_cvref_t<decltype(*mine.begin())>;
    double largest = 0;
    if constexpr (std::is_same_v<E, float>)
      for (const float x : right)
        if (std::isfinite(x)) largest = std::max(largest, std::abs(double{x}));
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (!agree(mine[i], right[i], largest)) return false;
    return true;
  } else {
    return mine == right;
  }
}

// A copy of an argument that owns its elements.
template <class D, class T = std::remove_cvref_t<D>>
struct Owned {
  explicit Owned(const T& x) : value(x) {}
  T& get() { return value; }
  void jitter(Jitter& j) { j(value); }
  std::size_t size() const { return 1; }
  bool agrees(const Owned& right) const { return agree(value, right.value); }
  T value;
};
template <class D, class E>
struct Owned<D, std::span<E>> {
  using V = std::remove_const_t<E>;
  explicit Owned(std::span<E> x) : values(x.begin(), x.end()) {}
  Owned(const Owned& other) : values(other.values) {}
  std::span<E>& get() { return view = std::span<E>(values); }
  void jitter(Jitter& j) {
    if constexpr (std::is_floating_point_v<V>) j(values);
  }
  std::size_t size() const { return values.size(); }
  bool agrees(const Owned& right) const { return agree(values, right.values); }
  std::vector<V> values;
  std::span<E> view;
};

template <bool kTwins, class R, class... A>
class Remote {
 public:
  Remote(const char* name, R (*self)(A...)) : name_(name), self_(self) {}

  R operator()(A... arguments) const {
    if constexpr (kCanTwin && kTwins) {
      std::tuple<Owned<A>...> before{Owned<A>(arguments)...};
      if constexpr (std::is_void_v<R>) {
        send(arguments...);
        twin(before);
      } else {
        R result = send(arguments...);
        twin(before);
        return result;
      }
    } else {
      return send(arguments...);
    }
  }

 private:
  static constexpr bool kCanTwin =
      !((kIsFunction<std::remove_cvref_t<A>> || std::is_same_v<std::remove_cvref_t<A>, TileLoader>) || ...);
  static constexpr bool kHasArrays = (kIsSpan<std::remove_cvref_t<A>> || ...);

  template <class... B>
  R send(B&... arguments) const {
    Link& link = Link::get();
    Writer request;
    put(request, std::string(name_));
    (put_argument(request, arguments), ...);
    try {
      Reader in = link.call(request, ask_for(arguments...));
      const auto status = get<Status>(in);
      const auto text = get<std::string>(in);
      note_scratch(get<std::int64_t>(in));
      (get_argument<A>(in, arguments), ...);
      if (status != Status::kDone) link.raise(status, text);
      if constexpr (!std::is_void_v<R>) return get<R>(in);
    } catch (const Malformed& error) {
      throw WorkerLost(std::string(name_) + "(): the worker's answer is not in order: " + error.what());
    }
  }

  // Callbacks are numbered by their place among the arguments.
  template <class... B>
  static Ask ask_for(B&... arguments) {
    if constexpr (kCanTwin) {
      return {};
    } else {
      return [&](std::uint8_t number, Reader& question, Writer& answer) {
        std::uint8_t place = 0;
        const auto one = [&](auto& argument) {
          if (place++ != number) return;
          using T = std::remove_cvref_t<decltype(argument)>;
          if constexpr (kIsFunction<T>)
            call_back(argument, answer);
          else if constexpr (std::is_same_v<T, TileLoader>)
            load(argument, question, answer);
        };
        (one(arguments), ...);
      };
    }
  }
  template <class Result>
  static void call_back(const std::function<Result()>& function, Writer& answer) {
    if constexpr (std::is_void_v<Result>)
      function();
    else
      put<Result>(answer, function());
  }
  template <class Loader>
  static void load(Loader& loader, Reader& question, Writer& answer) {
    answer_tile(loader, question, answer);
  }

  void twin(const std::tuple<Owned<A>...>& before) const {
    const std::size_t size = std::apply([](const auto&... a) { return (a.size() + ... + 0); }, before);
    auto right = reinterpret_cast<R (*)(A...)>(Link::get().answer(reinterpret_cast<void*>(self_)));
    if (!right || size > 2048 || twin_calls_left(name_) <= 0) return;
    for (int attempt = 0; attempt < 24; ++attempt)
      if (twin_fits(before, right, attempt % 2 == 0 ? Twin::kNear : Twin::kMultiples)) break;
    for (int attempt = 0; attempt < 4; ++attempt)
      if (twin_fits(before, right, Twin::kFresh)) break;
  }

  // False when the changed numbers do not fit together; the test itself looks at what is refused.
  bool twin_fits(const std::tuple<Owned<A>...>& before, R (*right)(A...), Twin twin) const {
    std::tuple<Owned<A>...> mine = before;
    Jitter jitter(Link::get().rng(), twin, !kHasArrays);
    std::apply([&](auto&... a) { (a.jitter(jitter), ...); }, mine);
    std::tuple<Owned<A>...> theirs = mine;
    const auto call = [](const auto& f, std::tuple<Owned<A>...>& with) {
      return std::apply(
          [&](auto&... a) {
            if constexpr (std::is_void_v<R>)
              return f(a.get()...), true;
            else
              return f(a.get()...);
          },
          with);
    };
    using Result = decltype(call(right, theirs));
    std::optional<Result> expected;
    try {
      expected.emplace(call(right, theirs));
    } catch (const std::invalid_argument&) {
      return false;
    }
    bool same = false;
    try {
      same = agree(call([this](auto&... a) { return this->send(a...); }, mine),
                   *expected)&& [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (std::get<I>(mine).agrees(std::get<I>(theirs)) && ...);
      }
      (std::index_sequence_for<A...>());
    } catch (const WorkerLost&) {
      throw;
    } catch (const std::exception&) {
    }
    if (!same) Link::get().note_wrong_twin(name_);
    return true;
  }

  const char* name_;
  R (*self_)(A...);
};

template <bool kTwins = true, class R, class... A>
Remote<kTwins, R, A...> remote(const char* name, R (*self)(A...)) {
  return {name, self};
}

}  // namespace nanolm::judge
