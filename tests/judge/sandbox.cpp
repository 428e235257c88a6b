// Runs one program that nobody trusts, and says how it ended. Linux.
//
//   sandbox [--read PATH]... [--write PATH]... [--wall S] [--cpu S] [--memory MiB] [--file-size MiB] [--processes N]
//           [--uid N] [--keep-fd N] [--report FD] [--output FILE] [--unsafe] -- PROGRAM ARGUMENT...
//   sandbox --probe          which means of isolation work here, one word each; exit status 0 when all do
//
// Landlock lets it read and run the system's programs and libraries and what --read names, and write what --write
// names. Namespaces of its own (user, pid, network, IPC) take away the network and every process but its own; when the
// program ends, or its time is up, the kernel ends all that it started. Started by root it runs as an unprivileged
// user. Limits on CPU time, memory, file size and processes are resource limits. What it prints goes to --output, else
// nowhere. The report is one line: "exited with status 0", "crashed: segmentation fault", "was stopped: ...". The exit
// status is the program's, 124 after a time-out, 128 + n after signal n, 125 when the sandbox itself failed.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Options {
  std::vector<std::string> read, write;
  double wall_s = 10;
  long cpu_s = 10, memory_mib = 1024, file_mib = 1, processes = 32, uid = 65534;
  int keep_fd = -1, report_fd = -1;
  std::string output = "/dev/null";
  bool unsafe = false, probe = false;
  std::vector<char*> command;
};
struct Means {
  bool user = false, namespaces = false, landlock = false, other_user = false;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "sandbox: %s: %s\n", what.c_str(), std::strerror(errno));
  _exit(125);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) fail(word + " needs a value");
      return argv[++i];
    };
    if (word == "--read")
      o.read.push_back(value());
    else if (word == "--write")
      o.write.push_back(value());
    else if (word == "--wall")
      o.wall_s = std::atof(value().c_str());
    else if (word == "--cpu")
      o.cpu_s = std::atol(value().c_str());
    else if (word == "--memory")
      o.memory_mib = std::atol(value().c_str());
    else if (word == "--file-size")
      o.file_mib = std::atol(value().c_str());
    else if (word == "--processes")
      o.processes = std::atol(value().c_str());
    else if (word == "--uid")
      o.uid = std::atol(value().c_str());
    else if (word == "--keep-fd")
      o.keep_fd = std::atoi(value().c_str());
    else if (word == "--report")
      o.report_fd = std::atoi(value().c_str());
    else if (word == "--output")
      o.output = value();
    else if (word == "--unsafe")
      o.unsafe = true;
    else if (word == "--probe")
      o.probe = true;
    else if (word == "--") {
      for (++i; i < argc; ++i) o.command.push_back(argv[i]);
    } else
      fail("unknown word " + word);
  }
  o.command.push_back(nullptr);
  return o;
}

bool put_text(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return good;
}

// Leaves root, then enters namespaces; a step that the system refuses is left out and shows in what is returned.
Means isolate(const Options& o) {
  Means means;
  means.other_user = geteuid() != 0;
  bool entered = false;
  const int spaces = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;
  if (geteuid() == 0) {
    const auto id = static_cast<uid_t>(o.uid);
    means.other_user = setgroups(0, nullptr) == 0 && setresgid(id, id, id) == 0;
    if (!means.other_user) return means;
    if (setresuid(id, id, id) != 0) fail("setresuid");
    prctl(PR_SET_DUMPABLE, 1);  // else the files below belong to root
  }
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  entered = unshare(CLONE_NEWUSER | spaces) == 0;
  if (entered) {
    means.namespaces = true;
    put_text("/proc/self/setgroups", "deny");
    means.user = put_text("/proc/self/uid_map", uid + " " + uid + " 1") &&
                 put_text("/proc/self/gid_map", gid + " " + gid + " 1");
  }
  return means;
}

// Landlock, by its system calls: C libraries have no functions for it, and old headers no constants.
constexpr std::uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadDir = 8, kTruncate = 1 << 14;
struct Ruleset {
  std::uint64_t fs, net, scoped;
};
struct __attribute__((packed)) Beneath {
  std::uint64_t allowed;
  std::int32_t parent;
};
long landlock_version() { return syscall(444, nullptr, 0, 1); }

bool allow(int ruleset, const std::string& path, std::uint64_t rights) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return true;  // what is not there cannot be read
  struct stat info;
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kExecute | kWriteFile | kReadFile | kTruncate;
  const Beneath rule{rights, fd};
  const bool good = syscall(445, ruleset, 1, &rule, 0) == 0;
  close(fd);
  return good;
}

bool landlock(const Options& o) {
  const long version = landlock_version();
  if (version < 1) return false;
  Ruleset handled{};
  handled.fs = (1 << 13) - 1;
  if (version >= 2) handled.fs |= 1 << 13;
  if (version >= 3) handled.fs |= kTruncate;
  if (version >= 5) handled.fs |= 1 << 15;
  if (version >= 4) handled.net = 3;
  if (version >= 6) handled.scoped = 3;
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(syscall(444, &handled, size, 0));
  if (ruleset < 0) return false;
  const std::uint64_t look = kExecute | kReadFile | kReadDir;
  const std::uint64_t all = handled.fs & ~(std::uint64_t{1} << 6 | 1 << 11 | 1 << 15);  // no device files
  bool good = true;
  for (const char* path :
       {"/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin", "/etc/ld.so.cache", "/etc/alternatives"})
    good = allow(ruleset, path, look) && good;
  good = allow(ruleset, "/dev/null", kReadFile | kWriteFile) && good;
  good = allow(ruleset, "/dev/urandom", kReadFile) && good;
  for (const std::string& path : o.read) good = allow(ruleset, path, look) && good;
  for (const std::string& path : o.write) good = allow(ruleset, path, all) && good;
  good = good && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(446, ruleset, 0) == 0;
  close(ruleset);
  return good;
}

void limit(int what, rlim_t soft, rlim_t hard) {
  const rlimit limits{soft, hard};
  if (setrlimit(what, &limits) != 0) fail("setrlimit");
}
void limit(int what, long value) { limit(what, static_cast<rlim_t>(value), static_cast<rlim_t>(value)); }

[[noreturn]] void become_program(const Options& o, int output) {
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(output, 1) < 0 || dup2(output, 2) < 0) fail("dup2");
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, 0) < 0) fail("/dev/null");
  // Only 0, 1, 2 and what the caller means to hand on.
  if (o.keep_fd > 3) {
    syscall(SYS_close_range, 3, o.keep_fd - 1, 0);
    syscall(SYS_close_range, o.keep_fd + 1, ~0u, 0);
  } else {
    syscall(SYS_close_range, o.keep_fd == 3 ? 4 : 3, ~0u, 0);
  }
  if (!landlock(o) && !o.unsafe) fail("Landlock does not work");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long mib = 1 << 20;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 64);
  limit(RLIMIT_CPU, static_cast<rlim_t>(o.cpu_s), static_cast<rlim_t>(o.cpu_s + 1));
  limit(RLIMIT_FSIZE, o.file_mib * mib);
  limit(RLIMIT_NPROC, o.processes);
  limit(RLIMIT_AS, o.memory_mib * mib);
  limit(RLIMIT_STACK, 8 * mib);
  execvp(o.command[0], o.command.data());
  fail(std::string("cannot start ") + o.command[0]);
}

std::string ending(int status) {
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    return code == 125 ? "could not be started" : "ended itself with exit status " + std::to_string(code);
  }
  switch (const int number = WTERMSIG(status)) {
    case SIGSEGV:
      return "crashed: segmentation fault (an index or pointer out of range, or a recursion without end)";
    case SIGFPE:
      return "crashed: arithmetic fault (an integer division by zero?)";
    case SIGABRT:
      return "crashed: aborted";
    case SIGBUS:
      return "crashed: bus error";
    case SIGILL:
      return "crashed: illegal instruction";
    case SIGXCPU:
      return "was stopped: it used up its CPU time";
    case SIGXFSZ:
      return "was stopped: it wrote or printed too much";
    case SIGKILL:
      return "was killed (out of memory?)";
    default:
      return "was ended by signal " + std::to_string(number);
  }
}

volatile sig_atomic_t told_to_end = 0;

void report(const Options& o, const std::string& text) {
  if (o.report_fd >= 0) [[maybe_unused]]
    const auto n = write(o.report_fd, text.data(), text.size());
}

// The descendants that outlived the program where no namespace ends them: they became children of this process.
void end_orphans() {
  for (int round = 0; round < 100; ++round) {
    std::ifstream file("/proc/self/task/" + std::to_string(getpid()) + "/children");
    bool any = false;
    for (pid_t pid; file >> pid; any = true) kill(pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!any) return;
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (o.probe) {
    const bool locked = landlock_version() >= 1;
    const Means means = isolate(o);
    std::printf("%s%s%s\n", locked ? "landlock " : "", means.user ? "namespaces " : "", means.other_user ? "user" : "");
    return locked && means.user && means.other_user ? 0 : 1;
  }
  const int output = open(o.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) fail(o.output);
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_end = 1; };
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaction(number, &action, nullptr);
  action.sa_handler = [](int) {};
  sigaction(SIGCHLD, &action, nullptr);

  const pid_t parent = getppid();
  const Means means = isolate(o);
  if (!o.unsafe && !means.namespaces && landlock_version() < 1) fail("no means of isolation works here");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  int status_pipe[2];
  if (pipe2(status_pipe, O_CLOEXEC) != 0) fail("pipe");
  const pid_t first = fork();
  if (first < 0) fail("fork");
  if (first == 0) {
    // Process 1 of its namespace: starts the program and outlives it for a moment. When it ends, all in it end.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);
    close(status_pipe[0]);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    signal(SIGTERM, SIG_DFL);
    const pid_t program = fork();
    if (program < 0) fail("fork");
    if (program == 0) {
      prctl(PR_SET_DUMPABLE, 1);
      setsid();
      become_program(o, output);
    }
    if (o.keep_fd >= 0) close(o.keep_fd);
    if (o.report_fd >= 0) close(o.report_fd);
    for (int status;;) {
      const pid_t ended = waitpid(-1, &status, 0);
      if (ended < 0 && errno != EINTR) _exit(125);
      if (ended != program) continue;
      [[maybe_unused]] const auto n = write(status_pipe[1], &status, sizeof status);
      _exit(0);
    }
  }
  close(status_pipe[1]);
  if (o.keep_fd >= 0) close(o.keep_fd);

  const auto start = std::chrono::steady_clock::now();
  int status = -1, code = 125;
  std::string text;
  for (;;) {
    const double used = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double left = o.wall_s - used;
    if (told_to_end || left <= 0) {
      text = told_to_end ? "was stopped" : "was stopped: its time was up";
      code = 124;
      break;
    }
    const timespec wait{static_cast<time_t>(left),
                        static_cast<long>((left - static_cast<double>(static_cast<time_t>(left))) * 1e9)};
    pollfd ready{status_pipe[0], POLLIN, 0};
    if (ppoll(&ready, 1, &wait, &before) <= 0) continue;
    if (read(status_pipe[0], &status, sizeof status) == sizeof status) {
      text = ending(status);
      code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else {
      text = "was ended from outside";
    }
    break;
  }
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  end_orphans();
  report(o, text);
  return code;
}
