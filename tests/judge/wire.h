// What the judge and a worker say to each other: messages of plain bytes over one socket.
//
// The judge holds the tests, the oracle and the outputs; the worker holds a student's library. A call is one message
// (name, arguments) and one answer (status, text, peak of scratch memory, changed arguments, result). Between the two
// the worker may ask back, for a callback or a tile, and the judge answers. Both run on one machine: native byte order.
// Nothing that a worker sends is trusted: sizes are checked before they are used.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace nanolm::judge {

inline constexpr int kLinkFd = 3;    // the worker's end of the socket
inline constexpr int kReportFd = 4;  // where the sandbox says how the worker ended

enum class Kind : std::uint8_t { kHello, kCall, kReturn, kAsk, kAnswer };
enum class Status : std::uint8_t {
  kDone,
  kInvalidArgument,
  kOutOfRange,
  kNotImplemented,
  kOtherException,
  kCallbackThrew,  // what the judge's own callback threw has passed through the student's code
  kBroken,         // the call wrote outside its arguments or changed an input
};

class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  void raw(const void* from, std::size_t size) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + size);
    if (size > 0) std::memcpy(bytes_.data() + before, from, size);
  }
  void clear() { bytes_.clear(); }
  void reserve(std::size_t size) { bytes_.reserve(size); }
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const char> bytes) : rest_(bytes) {}
  void raw(void* to, std::size_t size) {
    if (size > rest_.size()) throw Malformed("a message is too short");
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const char> rest_;
};

// Coding of a value. Structs without pointers travel as they lie in memory; the others list their fields.
template <class T>
struct Code {
  static_assert(std::is_trivially_copyable_v<T>, "this type needs a Code of its own");
  static void put(Writer& out, const T& value) { out.raw(&value, sizeof value); }
  static void get(Reader& in, T& value) { in.raw(&value, sizeof value); }
};
template <>
struct Code<bool> {
  static void put(Writer& out, bool value) { Code<char>::put(out, value ? 1 : 0); }
  static void get(Reader& in, bool& value) {
    char byte = 0;
    in.raw(&byte, 1);
    value = byte != 0;
  }
};
template <class T>
struct Code<std::vector<T>> {
  static void put(Writer& out, const std::vector<T>& values) {
    Code<std::uint64_t>::put(out, values.size());
    if constexpr (std::is_trivially_copyable_v<T>)
      out.raw(values.data(), values.size() * sizeof(T));
    else
      for (const T& value : values) Code<T>::put(out, value);
  }
  static void get(Reader& in, std::vector<T>& values) {
    std::uint64_t size = 0;
    Code<std::uint64_t>::get(in, size);
    const std::size_t least = std::is_trivially_copyable_v<T> ? sizeof(T) : sizeof(std::uint64_t);
    if (size > in.left() / least) throw Malformed("an array is longer than its message");
    values.clear();
    values.resize(size);
    if constexpr (std::is_trivially_copyable_v<T>)
      in.raw(values.data(), size * sizeof(T));
    else
      for (T& value : values) Code<T>::get(in, value);
  }
};
template <>
struct Code<std::string> {
  static void put(Writer& out, const std::string& text) {
    Code<std::vector<char>>::put(out, std::vector<char>(text.begin(), text.end()));
  }
  static void get(Reader& in, std::string& text) {
    std::vector<char> bytes;
    Code<std::vector<char>>::get(in, bytes);
    text.assign(bytes.begin(), bytes.end());
  }
};
// A struct whose fields are listed: template <> struct Fields<X> { static auto of(auto& x) { return std::tie(...); } };
template <class T>
struct Fields;
template <class T>
concept HasFields = requires(T& x) {
  Fields<T>::of(x);
};
template <HasFields T>
struct Code<T> {
  static void put(Writer& out, const T& value) {
    std::apply([&](const auto&... field) { (Code<std::remove_cvref_t<decltype(field)>>::put(out, field), ...); },
               Fields<T>::of(value));
  }
  static void get(Reader& in, T& value) {
    std::apply([&](auto&... field) { (Code<std::remove_cvref_t<decltype(field)>>::get(in, field), ...); },
               Fields<T>::of(value));
  }
};

template <class T>
void put(Writer& out, const T& value) {
  Code<T>::put(out, value);
}
template <class T>
T get(Reader& in) {
  T value{};
  Code<T>::get(in, value);
  return value;
}

// The span's length and its elements.
template <class T>
void put_elements(Writer& out, std::span<T> elements) {
  put<std::uint64_t>(out, elements.size());
  out.raw(elements.data(), elements.size_bytes());
}
template <class T>
void get_elements(Reader& in, std::span<T> elements) {
  if (get<std::uint64_t>(in) != elements.size()) throw Malformed("an array came back with another length");
  in.raw(elements.data(), elements.size_bytes());
}

// Whole blocks over a socket. False at the end of the stream or on an error.
inline bool write_all(int fd, const void* from, std::size_t size) {
  const auto* next = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t n = ::write(fd, next, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    next += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}
struct Header {
  std::uint64_t size;
  Kind kind;
};
inline bool send_message(int fd, Kind kind, std::span<const char> body) {
  const Header header{body.size(), kind};
  // One write for short messages, which are most of them.
  char small[2048];
  if (body.size() <= sizeof small - sizeof header) {
    std::memcpy(small, &header, sizeof header);
    if (!body.empty()) std::memcpy(small + sizeof header, body.data(), body.size());
    return write_all(fd, small, sizeof header + body.size());
  }
  return write_all(fd, &header, sizeof header) && write_all(fd, body.data(), body.size());
}

template <class T>
inline constexpr bool kIsFunction = false;
template <class R, class... A>
inline constexpr bool kIsFunction<std::function<R(A...)>> = true;
template <class T>
inline constexpr bool kIsSpan = false;
template <class T>
inline constexpr bool kIsSpan<std::span<T>> = true;

}  // namespace nanolm::judge
