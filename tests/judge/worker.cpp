#include "judge/worker.h"

#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

namespace nanolm::judge {
namespace {

std::vector<char> body;
Writer reply;

[[noreturn]] void end(int status) { _Exit(status); }  // no code of the student's runs at the end

Kind receive() {
  const auto take = [](void* to, std::size_t size) {
    auto* next = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t n = ::read(kLinkFd, next, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) end(0);
      next += n;
      size -= static_cast<std::size_t>(n);
    }
  };
  Header header{};
  take(&header, sizeof header);
  body.resize(header.size);
  take(body.data(), body.size());
  return header.kind;
}

// Says on standard error where in a library it crashed; the sandbox says by which signal.
void report_crash(int number, siginfo_t*, void* context) {
#if defined(__x86_64__)
  void* place = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  void* place = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
#else
  void* place = nullptr;
#endif
  Dl_info info;
  if (place && dladdr(place, &info)) {
    char text[] = "\ncrashed at 0x0000000000000000\n";
    auto offset = reinterpret_cast<std::uintptr_t>(place) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    for (char* digit = text + sizeof text - 3; offset != 0; offset >>= 4) *digit-- = "0123456789abcdef"[offset & 15];
    write_all(2, text, sizeof text - 1);
  }
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

Reader ask(std::uint8_t number, const Writer& question) {
  static Writer message;
  message.clear();
  put(message, number);
  message.raw(question.bytes().data(), question.bytes().size());
  if (!send_message(kLinkFd, Kind::kAsk, message.bytes()) || receive() != Kind::kAnswer) end(0);
  Reader answer(body);
  if (!get<bool>(answer)) throw CallbackThrew();
  return answer;
}

}  // namespace nanolm::judge

int main() {
  using namespace nanolm::judge;
  static char stack[1 << 16];
  const stack_t alternate{stack, 0, sizeof stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = report_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);

  body.reserve(1 << 20);  // so that messages during a call are not counted as its scratch
  reply.reserve(1 << 20);
  send_message(kLinkFd, Kind::kHello, {});
  for (;;) {
    if (receive() != Kind::kCall) end(0);
    const std::vector<char> request = body;
    Reader in(request);
    const auto name = get<std::string>(in);
    reply.clear();
    for (const Served& served : kServed)
      if (name == served.name) served.serve(in, reply);
    if (!send_message(kLinkFd, Kind::kReturn, reply.bytes())) end(0);
  }
}
