// Hostile: asks somebody else.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "nanolm/online_softmax.h"

static void evil() {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(22);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&place), sizeof place);
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
