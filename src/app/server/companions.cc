#include "app/server/companions.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

Companions::Host::Host(Companions& companions) : companions_(companions), ticket_(proto::new_nonce()) {
  const MutexLock lock(companions_.mutex_);
  companions_.ticket_ = ticket_;
}

Companions::Host::~Host() {
  MutexLock lock(companions_.mutex_);
  companions_.ticket_.clear();
  while (companions_.guests_ > 0) lock.wait(companions_.one_left_);
}

Companions::Guest::Guest(Companions& companions, const std::string& ticket) : companions_(companions) {
  const MutexLock lock(companions_.mutex_);
  if (ticket.empty() || ticket != companions_.ticket_) throw peer_error("the session that this connection belongs to is over", "try again");
  if (companions_.guests_ == kMost) throw peer_error(fmt::format("a client has {} runs at the same time at most", kMost + 1));
  ++companions_.guests_;
}

Companions::Guest::~Guest() {
  const MutexLock lock(companions_.mutex_);
  --companions_.guests_;
  companions_.one_left_.notify_all();
}

}  // namespace gdrperf::app
