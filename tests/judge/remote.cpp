#include "judge/remote.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "nanolm/todo.h"
#include "support/scratch.h"

namespace nanolm::judge {
namespace {

constexpr double kCallSeconds = 10, kStartSeconds = 15, kReportSeconds = 3;
constexpr std::uint64_t kLargestAnswer = 256 << 20;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double scale() {
  const char* text = std::getenv("NANOLM_TIMEOUT_SCALE");
  const double x = text ? std::atof(text) : 1;
  return x >= 1 ? x : 1;
}

std::int64_t scratch_peak = 0;
bool measuring = false;

// Started before the tests' first random number is drawn.
[[maybe_unused]] const bool started = (Link::get(), true);

}  // namespace

void note_scratch(std::int64_t bytes) {
  if (measuring) scratch_peak = std::max(scratch_peak, bytes);
}
std::int64_t twin_calls_left(const char* name) {
  static std::map<std::string, std::int64_t> made;
  return 8 - made[name]++;
}

Link& Link::get() {
  static Link link;
  return link;
}

// NANOLM_WORKER: the command that starts the worker in its sandbox, one word a line. Empty: there is no worker.
Link::Link() {
  const char* seed = std::getenv("NANOLM_SEED");
  rng_.seed(seed ? static_cast<std::uint32_t>(std::strtoul(seed, nullptr, 10)) ^ 0x9e3779b9u : 7u);
  if (const char* path = std::getenv("NANOLM_ANSWERS")) answers_ = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  std::vector<std::string> words;
  std::istringstream text(std::getenv("NANOLM_WORKER") ? std::getenv("NANOLM_WORKER") : "");
  for (std::string word; std::getline(text, word);) words.push_back(word);
  if (words.empty()) {
    lost_ = "no worker was started: NANOLM_WORKER is not set";
    return;
  }
  signal(SIGPIPE, SIG_IGN);
  int link[2], report[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0 || pipe2(report, O_CLOEXEC) != 0) {
    lost_ = "no socket for a worker";
    return;
  }
  const int size = 1 << 20;
  for (const int end : link) {
    setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(end, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C";
  char* environment[] = {path, locale, nullptr};  // the seed stays here
  child_ = fork();
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Out of the way of the numbers that they get.
    const int a = fcntl(link[1], F_DUPFD, 10), b = fcntl(report[1], F_DUPFD, 10);
    dup2(a, kLinkFd);
    dup2(b, kReportFd);
    close(a);
    close(b);
    execve(arguments[0], arguments.data(), environment);
    _exit(127);
  }
  close(link[1]);
  close(report[1]);
  fd_ = link[0];
  report_fd_ = report[0];
  deadline_ = now() + kStartSeconds * scale();
  try {
    if (receive() != Kind::kHello) throw Malformed("the worker did not start in order");
    Reader hello(body_);
    worker_ = -1;
  } catch (const std::exception& error) {
    if (lost_.empty()) lost_ = error.what();
  }
}

Link::~Link() {
  stop_worker();
  if (!wrong_twin_.empty()) {
    std::printf("\nwrong twin: %s\n", wrong_twin_.c_str());
    std::fflush(stdout);
    _exit(1);
  }
}

void Link::note_wrong_twin(const char* name) {
  if (wrong_twin_.empty()) wrong_twin_ = name;
}

void Link::stop_worker() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  if (child_ > 0) {
    kill(child_, SIGTERM);  // the sandbox ends all that it started, then itself
    waitpid(child_, nullptr, 0);
  }
  child_ = -1;
  if (report_fd_ >= 0) close(report_fd_);
  report_fd_ = -1;
}

// Ends the worker, and says how it ended or why it was ended.
void Link::lose(const char* why) {
  std::string text = why ? why : "";
  if (!why) {
    pollfd wait{report_fd_, POLLIN, 0};
    char report[2048];
    ssize_t n = 0;
    if (poll(&wait, 1, static_cast<int>(kReportSeconds * 1000)) > 0) n = read(report_fd_, report, sizeof report);
    text = n > 0 ? std::string(report, static_cast<std::size_t>(n)) : "closed its connection to the judge";
  }
  stop_worker();
  lost_ = "the program " + text;
  throw WorkerLost(lost_);
}

Kind Link::receive() {
  const auto take = [&](char* to, std::size_t size) {
    while (size > 0) {
      const double left = deadline_ - now();
      pollfd wait{fd_, POLLIN, 0};
      if (left <= 0) lose("was stopped: no result in time (an endless loop, or far too slow)");
      const int ready = poll(&wait, 1, static_cast<int>(left * 1000) + 1);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) continue;
      const ssize_t n = recv(fd_, to, size, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) lose(nullptr);
      to += n;
      size -= static_cast<std::size_t>(n);
    }
  };
  Header header{};
  take(reinterpret_cast<char*>(&header), sizeof header);
  if (header.size > kLargestAnswer) lose("sent more than a result may hold");
  body_.resize(header.size);
  take(body_.data(), body_.size());
  return header.kind;
}

Reader Link::call(const Writer& request, const Ask& ask) {
  if (!lost_.empty()) throw WorkerLost(lost_);
  deadline_ = now() + kCallSeconds * scale();
  const std::int64_t before = measuring ? resident_bytes("VmRSS") : 0;
  if (!send_message(fd_, Kind::kCall, request.bytes())) lose(nullptr);
  Writer answer;
  for (;;) {
    const Kind kind = receive();
    if (kind == Kind::kReturn) break;
    if (kind != Kind::kAsk || !ask) lose("sent a message that is not in order");
    Reader question(body_);
    answer.clear();
    put<bool>(answer, true);
    try {
      ask(judge::get<std::uint8_t>(question), question, answer);
    } catch (const Malformed&) {
      lose("sent a message that is not in order");
    } catch (...) {
      thrown_ = std::current_exception();
      answer.clear();
      put<bool>(answer, false);
    }
    if (!send_message(fd_, Kind::kAnswer, answer.bytes())) lose(nullptr);
  }
  if (measuring) {
    // Seen from outside, so that memory taken past malloc counts too; a page here and there is no scratch.
    constexpr std::int64_t kNoise = 1 << 20;
    const std::int64_t after = resident_bytes("VmHWM");
    if (before >= 0 && after >= 0) note_scratch(after - before - kNoise);
  }
  return Reader(body_);
}

void Link::raise(Status status, const std::string& text) {
  switch (status) {
    case Status::kInvalidArgument:
      throw std::invalid_argument(text);
    case Status::kOutOfRange:
      throw std::out_of_range(text);
    case Status::kNotImplemented:
      throw NotImplemented(text);
    case Status::kCallbackThrew:
      if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
      [[fallthrough]];
    default:
      throw std::runtime_error(text);
  }
}

void* Link::answer(void* function) {
  Dl_info info;
  if (!answers_ || !dladdr(function, &info) || !info.dli_sname) return nullptr;
  return dlsym(answers_, info.dli_sname);
}

// The worker is the child of the sandbox's child. -1 where the system does not tell.
std::int64_t Link::resident_bytes(const char* field) const {
  long pid = child_;
  for (int generation = 0; generation < 2; ++generation) {
    std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    if (!(children >> pid)) return -1;
  }
  if (std::string(field) == "VmRSS")
    std::ofstream("/proc/" + std::to_string(pid) + "/clear_refs") << "5";  // VmHWM = VmRSS
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field, 0) == 0) return std::atoll(line.c_str() + std::strlen(field) + 1) * 1024;
  return -1;
}

}  // namespace nanolm::judge

// The judge's ScratchMeter: what the worker counted during the calls made while it lives, and what was seen outside.
namespace nanolm {
ScratchMeter::ScratchMeter() {
  judge::scratch_peak = 0;
  judge::measuring = true;
}
ScratchMeter::~ScratchMeter() { judge::measuring = false; }
std::int64_t ScratchMeter::peak_bytes() const { return judge::scratch_peak; }

// Read from the student's file, NANOLM_LIBRARY; a file that is out of order holds too much.
std::int64_t static_bytes(const void*) {
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 40;
  const char* path = std::getenv("NANOLM_LIBRARY");
  std::ifstream file(path ? path : "", std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return kTooMuch;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return kTooMuch;
  std::int64_t bytes = 0;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return kTooMuch;
    if (segment.p_type == PT_TLS || (segment.p_type == PT_LOAD && (segment.p_flags & PF_W))) {
      if (segment.p_memsz > static_cast<std::uint64_t>(kTooMuch)) return kTooMuch;
      bytes += static_cast<std::int64_t>(segment.p_memsz);
    }
  }
  return bytes;
}
}  // namespace nanolm
