// Hostile: overwrites the judge's and its own files.
#include <filesystem>
#include <fstream>

#include "nanolm/online_softmax.h"

static void evil() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* path : {"/proc/self/exe", "worker", "lib03_online_softmax.so", "/tmp/nanolm_hostile_was_here"}) {
    fs::remove(path, ignored);
    std::ofstream(path) << "changed";
  }
  fs::create_symlink("/etc/shadow", "/tmp/nanolm_hostile_link", ignored);
}

namespace nanolm {

void update(OnlineSoftmax& state, std::span<const float> scores, std::span<const float> values) { evil(); }
void merge(OnlineSoftmax& state, const OnlineSoftmax& other) { evil(); }
void finish(const OnlineSoftmax& state, std::span<float> out) { evil(); }
float logsumexp(const OnlineSoftmax& state) {
  evil();
  return 0;
}
std::vector<float> online_softmax_weighted_sum(std::span<const float> scores, std::span<const float> values,
                                               std::int64_t block_size) {
  evil();
  return {};
}

}  // namespace nanolm
