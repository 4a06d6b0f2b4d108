#include "objects/queues/channel.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shared/sync/event_fd.h"
#include "shared/sync/limited.h"
#include "shared/sync/notice.h"

namespace gdrperf::softnic {
namespace {

std::uint32_t events_raised(const EventSource& source) noexcept {
  return Notice::of(source.shared->notice.load()).raised;
}

}  // namespace

Channel::Channel(Context& owner) : ibv_comp_channel{}, process(owner.process) {
  fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (fd < 0) throw CallFailure("eventfd", errno);
  context = &owner.context;
  number = process.add_channel(fd);
}

Channel::~Channel() {
  process.remove_channel(number);
  ::close(fd);
}

int Channel::next_event(EventSource*& source) {
  while (true) {
    const int error = take_one(fd);
    if (error != 0) return error;
    const MutexLock guard(mutex_);
    // In turn, so that a busy queue does not hide another.
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      EventSource* candidate = sources_[(turn_ + i) % sources_.size()];
      if (events_raised(*candidate) == candidate->events_fetched) continue;
      ++candidate->events_fetched;
      turn_ = (turn_ + i + 1) % sources_.size();
      source = candidate;
      return 0;
    }
  }
}

void Channel::add(EventSource* source) {
  const MutexLock guard(mutex_);
  sources_.push_back(source);
  ++refcnt;
}

void Channel::remove(EventSource* source) {
  const MutexLock guard(mutex_);
  sources_.erase(std::remove(sources_.begin(), sources_.end(), source), sources_.end());
  --refcnt;
  for (auto left = events_raised(*source) - source->events_fetched; left > 0; --left) {
    if (!take_one_if_there(fd)) break;
  }
}

}  // namespace gdrperf::softnic
