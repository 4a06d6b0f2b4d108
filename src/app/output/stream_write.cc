#include "app/output/stream_write.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>

#include "app/client/stop_signal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAgain = 50ms;

/// With a reader, until some time after a signal: it may be about to come, or to go on. All waits share that time, and
/// each looks twice at least, as the end of a run may have taken it already.
class ReaderPatience {
 public:
  bool over() {
    const auto since = signalled_for();
    return since && *since > kAfterSignal && ++looks_ > 1;
  }

 private:
  static constexpr auto kAfterSignal = 500ms;
  int looks_ = 0;
};

}  // namespace

UniqueFd open_stream(const std::string& path) {
  for (ReaderPatience patience;;) {
    // Non-blocking, for a named pipe that nobody has open to read; what follows waits by poll() anyway.
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
    if (fd || (errno != ENXIO && errno != EINTR)) return fd;
    if (patience.over()) {
      errno = EINTR;
      return {};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

bool write_stream(int fd, std::string_view content) {
  for (ReaderPatience patience; !content.empty();) {
    pollfd entry{fd, POLLOUT, 0};
    // A pipe that poll() calls writable takes so much without waiting.
    const int ready = ::poll(&entry, 1, static_cast<int>(kLookAgain.count()));
    const ssize_t put = ready > 0 ? ::write(fd, content.data(), std::min<std::size_t>(content.size(), PIPE_BUF)) : 0;
    if ((ready < 0 || put < 0) && errno != EINTR && errno != EAGAIN) return false;
    if (put > 0) {
      content.remove_prefix(static_cast<std::size_t>(put));
    } else if (patience.over()) {
      errno = EINTR;
      return false;
    }
  }
  return true;
}

}  // namespace gdrperf::app
