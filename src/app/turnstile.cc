#include "gdrperf/app/turnstile.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

Turnstile::Ticket::~Ticket() {
  const std::lock_guard lock(turnstile_.mutex_);
  turnstile_.queue_.erase(place_);
  for (const Visitor& visitor : turnstile_.queue_) {
    const std::uint64_t one = 1;
    if (::write(visitor.bell.get(), &one, sizeof one) < 0) continue;  // it rings already
  }
}

bool Turnstile::Ticket::is_turn() const {
  const std::lock_guard lock(turnstile_.mutex_);
  return turnstile_.queue_.begin() == place_;
}

void Turnstile::Ticket::acknowledge() {
  std::uint64_t count;
  if (::read(fd(), &count, sizeof count) < 0) return;  // it has not rung
}

Turnstile::Ticket Turnstile::enter(std::string name) {
  UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) throw call_error("eventfd", errno);
  const std::lock_guard lock(mutex_);
  return Ticket(*this, queue_.insert(queue_.end(), {std::move(name), std::move(bell)}));
}

std::string Turnstile::serving() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() ? std::string() : queue_.front().name;
}

}  // namespace gdrperf::app
