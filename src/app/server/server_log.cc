#include "app/server/server_log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "gdrperf/base/printable.h"

namespace gdrperf::app {

bool ServerLog::put(const std::string& text) {
  std::string line = "gdrperf: " + printable_lines(text);
  // A pipe that is writable takes PIPE_BUF bytes whole and without waiting (pipe(7)).
  if (line.size() >= PIPE_BUF) line.resize(PIPE_BUF - 1);
  line += '\n';
  pollfd entry{fd_, POLLOUT, 0};
  if (::poll(&entry, 1, 0) <= 0 || (entry.revents & POLLOUT) == 0) return false;
  return ::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

void ServerLog::line(const std::string& text) {
  const MutexLock lock(mutex_);
  if (lost_ > 0) {
    if (!put(fmt::format("{} line{} of this log lost: nobody read {}", lost_, lost_ == 1 ? "" : "s",
                         lost_ == 1 ? "it" : "them"))) {
      ++lost_;
      return;
    }
    lost_ = 0;
  }
  if (!put(text)) ++lost_;
}

std::string DroppedConnections::take(Time now) {
  const std::string text =
      count_ == 1 ? "dropped a connection: " + last_
                  : fmt::format("dropped {} connections that were no clients, the last: {}", count_, last_);
  count_ = 0;
  told_ = now;
  return text;
}

std::string DroppedConnections::note(const std::string& reason, Time now) {
  const MutexLock lock(mutex_);
  ++count_;
  last_ = reason;
  return told_ == Time{} || now - told_ >= kInterval ? take(now) : "";
}

std::string DroppedConnections::due(Time now) {
  const MutexLock lock(mutex_);
  return count_ > 0 && now - told_ >= kInterval ? take(now) : "";
}

std::string DroppedConnections::rest() {
  const MutexLock lock(mutex_);
  return count_ > 0 ? take(told_) : "";
}

bool DroppedConnections::pending() const {
  const MutexLock lock(mutex_);
  return count_ > 0;
}

}  // namespace gdrperf::app
