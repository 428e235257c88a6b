#include "findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace nanolm::emulator {
namespace {

const char* file() {
  const char* const name = std::getenv("NANOLM_EMULATOR_FINDINGS");
  return name && *name ? name : nullptr;
}

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c == '\n' ? ' ' : c;
  }
  return json + "\"";
}
std::string list(const std::vector<std::string>& texts) {
  std::string json;
  for (const std::string& text : texts) json += (json.empty() ? "" : ", ") + quoted(text);
  return "[" + json + "]";
}

}  // namespace

bool all_findings_wanted() { return file() != nullptr; }

void write_down(const Finding& finding) {
  if (!file()) return;
  static std::mutex mutex;
  static std::set<std::string> places, said;
  const std::lock_guard lock(mutex);
  if (!said.insert(finding.says).second) return;
  if (!finding.places.empty() && !places.insert(finding.kind + list(finding.places)).second) return;
  const std::string line = "{\"kind\": " + quoted(finding.kind) + ", \"kernel\": " + quoted(finding.kernel) +
                           ", \"array\": " + quoted(finding.array) + ", \"element\": " + quoted(finding.element) +
                           ", \"places\": " + list(finding.places) + ", \"threads\": " + list(finding.threads) +
                           ", \"says\": " + quoted(finding.says) + "}\n";
  // One write each: the programs of many tests append to one file.
  const int out = open(file(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (out < 0 || write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  close(out);
}

}  // namespace nanolm::emulator
