// One lesson's functions, from its list in functions/: as remote calls in the judge, or as served by a worker.
// A list is code in these words, so that both sides come from one line a function.
#define IN std::span<const float>
#define OUT std::span<float>
#define NUMBERS std::span<const double>
#define FIELDS(type, ...)                                     \
  namespace nanolm::judge {                                   \
  template <>                                                 \
  struct Fields<type> {                                       \
    static auto of(auto& x) { return std::tie(__VA_ARGS__); } \
  };                                                          \
  }

#if defined(NANOLM_WORKER_SIDE)

#include "judge/worker.h"
#define FUNCTIONS           \
  namespace nanolm::judge { \
  static const Served kFunctions[] = {
#define REMOTE(result, name, parameters, arguments) \
  {#name, [](Reader& in, Writer& out) { serve(static_cast<result(*) parameters>(&nanolm::name), in, out); }},
#define REMOTE_WITHOUT_TWIN REMOTE
#define END                                                 \
  }                                                         \
  ;                                                         \
  extern const std::span<const Served> kServed(kFunctions); \
  }

#else

#include "judge/remote.h"
#define FUNCTIONS namespace nanolm {
#define REMOTE(result, name, parameters, arguments) \
  result name parameters { return judge::remote(#name, static_cast<result(*) parameters>(&nanolm::name)) arguments; }
#define END }
#define REMOTE_WITHOUT_TWIN(result, name, parameters, arguments)                                    \
  result name parameters {                                                                          \
    return judge::remote<false>(#name, static_cast<result(*) parameters>(&nanolm::name)) arguments; \
  }

#endif

#include NANOLM_FUNCTIONS
