#include "app/server/client_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

using std::chrono::steady_clock;

ClientQueue::Ticket::~Ticket() {
  const MutexLock lock(queue_of_clients_.mutex_);
  const bool first = queue_of_clients_.queue_.begin() == place_;
  queue_of_clients_.queue_.erase(place_);
  if (first) queue_of_clients_.begin_turn();
  for (const Visitor& visitor : queue_of_clients_.queue_) {
    const std::uint64_t one = 1;
    if (::write(visitor.bell.get(), &one, sizeof one) < 0) continue;  // it rings already
  }
}

bool ClientQueue::Ticket::is_turn() const {
  const MutexLock lock(queue_of_clients_.mutex_);
  return queue_of_clients_.queue_.begin() == place_;
}

std::size_t ClientQueue::Ticket::ahead() const {
  const MutexLock lock(queue_of_clients_.mutex_);
  std::size_t count = 0;
  for (auto it = queue_of_clients_.queue_.begin(); it != place_; ++it) ++count;
  return count;
}

void ClientQueue::Ticket::acknowledge() {
  std::uint64_t count;
  if (::read(fd(), &count, sizeof count) < 0) return;  // it has not rung
}

void ClientQueue::begin_turn() {
  if (!queue_.empty()) queue_.front().since = steady_clock::now();
}

ClientQueue::Ticket ClientQueue::enter(std::string name) {
  UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) throw call_error("eventfd", errno);
  const MutexLock lock(mutex_);
  const auto place = queue_.insert(queue_.end(), {std::move(name), std::move(bell)});
  if (place == queue_.begin()) begin_turn();
  return Ticket(*this, place);
}

ClientQueue::Front ClientQueue::front() const {
  const MutexLock lock(mutex_);
  if (queue_.empty()) return {};
  return {queue_.front().name, steady_clock::now() - queue_.front().since};
}

bool ClientQueue::others_wait() const {
  const MutexLock lock(mutex_);
  return queue_.size() > 1;
}

}  // namespace gdrperf::app
