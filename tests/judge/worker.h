// The worker's end: serves calls by a student's library. It knows no GoogleTest, no expectation and no seed.
#pragma once

#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "judge/wire.h"
#include "nanolm/todo.h"
#include "support/scratch.h"

namespace nanolm {
class TileLoader;
}

namespace nanolm::judge {

// Thrown through the student's code when the judge's callback threw.
struct CallbackThrew {};

// Asks the judge during a call, and returns what it answers; the reader is good until the next question.
Reader ask(std::uint8_t number, const Writer& question);
std::unique_ptr<TileLoader> tile_loader(std::uint8_t number);

// An argument as the student's function gets it. Arrays lie between guards that show what was written outside.
template <class D, class T = std::remove_cvref_t<D>>
class Held {
 public:
  Held(Reader& in, std::uint8_t) {
    if constexpr (std::is_default_constructible_v<T>)
      value_.emplace();
    else
      value_.emplace(0);
    Code<T>::get(in, *value_);
  }
  T& get() { return *value_; }
  const char* complaint() { return nullptr; }
  void send(Writer& out) {
    if constexpr (std::is_lvalue_reference_v<D> && !std::is_const_v<std::remove_reference_t<D>>) put<T>(out, *value_);
  }

 private:
  std::optional<T> value_;
};

template <class D, class E>
class Held<D, std::span<E>> {
 public:
  using V = std::remove_const_t<E>;
  Held(Reader& in, std::uint8_t) {
    const auto size = judge::get<std::uint64_t>(in);
    if (size > in.left()) throw Malformed("an array is longer than its message");
    buffer_.assign(size + 2 * kGuard, static_cast<V>(777.25));
    in.raw(buffer_.data() + kGuard, size * sizeof(V));
    if constexpr (std::is_const_v<E>) before_ = buffer_;
  }
  std::span<E>& get() { return view_ = std::span<E>(buffer_).subspan(kGuard, buffer_.size() - 2 * kGuard); }
  const char* complaint() {
    if constexpr (std::is_const_v<E>) {
      if (std::memcmp(buffer_.data(), before_.data(), buffer_.size() * sizeof(V)) != 0) return "changed an input";
    }
    for (std::size_t i = 0; i < kGuard; ++i)
      if (buffer_[i] != static_cast<V>(777.25) || buffer_[buffer_.size() - 1 - i] != static_cast<V>(777.25))
        return "wrote outside an array";
    return nullptr;
  }
  void send(Writer& out) {
    if constexpr (!std::is_const_v<E>) put_elements(out, get());
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::vector<V> buffer_, before_;
  std::span<E> view_;
};

template <class D, class R>
class Held<D, std::function<R()>> {
 public:
  Held(Reader& in, std::uint8_t number) {
    if (!judge::get<bool>(in)) return;
    function_ = [number]() -> R {
      [[maybe_unused]] Reader answer = ask(number, Writer());
      if constexpr (!std::is_void_v<R>) return judge::get<R>(answer);
    };
  }
  std::function<R()>& get() { return function_; }
  const char* complaint() { return nullptr; }
  void send(Writer&) {}

 private:
  std::function<R()> function_;
};

template <class D>
class Held<D, TileLoader> {
 public:
  Held(Reader&, std::uint8_t number) : loader_(tile_loader(number)) {}
  TileLoader& get() { return *loader_; }
  const char* complaint() { return nullptr; }
  void send(Writer&) {}

 private:
  std::unique_ptr<TileLoader> loader_;
};

template <class R, class... A>
void serve(R (*function)(A...), Reader& in, Writer& out) {
  auto number = [next = std::uint8_t{0}]() mutable { return next++; };
  std::tuple<Held<A>...> held{Held<A>(in, number())...};  // braces: read in order
  Status status = Status::kDone;
  std::string text;
  std::int64_t peak = 0;
  struct Nothing {};
  std::optional<std::conditional_t<std::is_void_v<R>, Nothing, R>> result;
  const auto failed = [&](Status s, const char* says) { status = s, text = says; };
  {
    const ScratchMeter meter;
    try {
      std::apply(
          [&](auto&... argument) {
            if constexpr (std::is_void_v<R>)
              function(argument.get()...);
            else
              result.emplace(function(argument.get()...));
          },
          held);
    } catch (const std::invalid_argument& error) {
      failed(Status::kInvalidArgument, error.what());
    } catch (const std::out_of_range& error) {
      failed(Status::kOutOfRange, error.what());
    } catch (const NotImplemented& error) {
      failed(Status::kNotImplemented, error.what());
    } catch (const CallbackThrew&) {
      failed(Status::kCallbackThrew, "what a callback threw came back");
    } catch (const std::exception& error) {
      failed(Status::kOtherException, error.what());
    } catch (...) {
      failed(Status::kOtherException, "an exception that is no std::exception");
    }
    peak = meter.peak_bytes();
  }
  std::apply(
      [&](auto&... argument) {
        for (const char* complaint : {argument.complaint()...})
          if (complaint) failed(Status::kBroken, complaint);
      },
      held);
  put(out, status);
  put(out, text);
  put(out, peak);
  std::apply([&](auto&... argument) { (argument.send(out), ...); }, held);
  if constexpr (!std::is_void_v<R>)
    if (status == Status::kDone) put<R>(out, *result);
}

struct Served {
  const char* name;
  void (*serve)(Reader& in, Writer& out);
};
extern const std::span<const Served> kServed;  // in the lesson's part of the worker

}  // namespace nanolm::judge
