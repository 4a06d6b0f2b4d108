#include "remote/reach.h"

#include <unistd.h>

#include <set>

#include <fmt/format.h>

#include "gdrperf/base/mutex.h"
#include "remote/address.h"
#include "remote/secret.h"
#include "shared/segment/completion.h"
#include "shared/sync/limited.h"

namespace gdrperf::softnic {
namespace {

constexpr int kTryMs = 50;

}  // namespace

void say_once(const std::string& text) {
  static Mutex mutex;
  static auto& said = *new std::set<std::string>();  // never destroyed: threads outlive main()
  const MutexLock guard(mutex);
  if (said.size() < 64 && said.insert(text).second) say(text);
}

TcpReached reach_over_tcp(const TcpRoute& route, const DeviceConfig& device, const TcpPatience& patience) {
  TcpReached reached;
  const std::string secret = secret_of(device, reached.why);
  if (secret.empty()) {
    reached.refusal = TcpRefusal::kNoSecret;
    reached.why = fmt::format("no token= in SOFTNIC, and no key of this user's: {}", reached.why);
    return reached;
  }
  const std::uint64_t until = monotonic_ns() + static_cast<std::uint64_t>(patience.nobody_ms) * 1'000'000u;
  while (true) {
    reached.why.clear();
    reached.socket = connect_over_tcp(route, device.tcp_port, device.netdev, secret, patience.connect_ms,
                                      reached.refusal, reached.why);
    reached.answered = reached.socket || !reached.why.empty();
    if (reached.socket || reached.refusal != TcpRefusal::kNobody || monotonic_ns() >= until) break;
    ::usleep(kTryMs * 1000);
  }
  if (!reached.answered)
    reached.why = fmt::format("nobody answers on TCP port {} there (tcp= in SOFTNIC)", device.tcp_port);
  return reached;
}

void say_not_reached(const TcpRoute& route, const TcpReached& reached) {
  say_once(fmt::format("peer {} not reached: {}", text_of(route.to), reached.why));
}

}  // namespace gdrperf::softnic
