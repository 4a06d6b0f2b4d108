#include "app/output/stream_write.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <optional>
#include <thread>

#include "app/client/stop_signal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kLook = 50ms;

/// For a reader, until some time after a signal: it may be about to come, or to go on.
class ReaderPatience {
 public:
  bool over() {
    if (!signalled()) return false;
    if (!told_) told_ = steady_clock::now();
    return steady_clock::now() - *told_ > kAfterSignal;
  }

 private:
  static constexpr auto kAfterSignal = 500ms;
  std::optional<steady_clock::time_point> told_;
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
    std::this_thread::sleep_for(kLook);
  }
}

bool write_stream(int fd, std::string_view content) {
  for (ReaderPatience patience; !content.empty();) {
    pollfd entry{fd, POLLOUT, 0};
    // A pipe that poll() calls writable takes so much without waiting.
    const int ready = ::poll(&entry, 1, static_cast<int>(kLook.count()));
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
