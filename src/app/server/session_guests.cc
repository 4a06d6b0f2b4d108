#include "app/server/session_guests.h"

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

SessionGuests::Host::Host(SessionGuests& session_guests) : guests_of_(session_guests), ticket_(proto::new_nonce()) {
  const MutexLock lock(guests_of_.mutex_);
  guests_of_.ticket_ = ticket_;
}

SessionGuests::Host::~Host() {
  MutexLock lock(guests_of_.mutex_);
  guests_of_.ticket_.clear();
  while (guests_of_.guests_ > 0) lock.wait(guests_of_.one_left_);
}

SessionGuests::Guest::Guest(SessionGuests& session_guests, const std::string& ticket) : guests_of_(session_guests) {
  const MutexLock lock(guests_of_.mutex_);
  if (ticket.empty() || ticket != guests_of_.ticket_)
    throw peer_error("the session that this connection belongs to is over", "try again");
  if (guests_of_.guests_ == kMost)
    throw peer_error(fmt::format("a client has {} runs at the same time at most", kMost + 1));
  ++guests_of_.guests_;
}

SessionGuests::Guest::~Guest() {
  const MutexLock lock(guests_of_.mutex_);
  --guests_of_.guests_;
  guests_of_.one_left_.notify_all();
}

}  // namespace gdrperf::app
