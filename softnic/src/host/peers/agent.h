#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/process/wire.h"
#include "shared/segment/layout.h"

/// The way for memory that is neither shared nor within the kernel's reach (a
/// container without the right, another PID namespace): the owner copies.
namespace gdrperf::softnic {

/// Between `fd`, a memfd, and memory of this process, by the kernel: 0, or an
/// errno, EFAULT for memory that is not there. The last byte is stored last.
int store_bytes(int fd, std::uint64_t address, std::uint64_t bytes, std::uint64_t offset) noexcept;
int fetch_bytes(int fd, std::uint64_t address, std::uint64_t bytes) noexcept;

/// Threads of this process that copy for peers which asked for it, one for each,
/// asleep in recv. Never made where nobody asks. Thread-safe.
class Agents {
 public:
  Agents(const Regions& regions, const std::uint64_t& process_id) : regions_(regions), process_id_(process_id) {}

  /// Answers on `socket`, and serves it until the peer hangs up. `bounce` is
  /// the peer's memfd, through which the data goes.
  void serve(UniqueFd socket, UniqueFd bounce);
  /// After a key was withdrawn: waits until nothing is copied by it any more.
  void settle() noexcept;

  /// Held across fork.
  Mutex& mutex() noexcept RETURN_CAPABILITY(mutex_) { return mutex_; }
  /// In a forked child: closes what was inherited.
  void abandon() NO_THREAD_SAFETY_ANALYSIS;  // the only thread, the lock held since before the fork

 private:
  struct Connection {
    int socket;
    int bounce;
  };
  void run(Connection connection);
  int copy(const CopyRequest& request, int bounce) noexcept;

  const Regions& regions_;
  const std::uint64_t& process_id_;
  std::shared_mutex copying_;  ///< shared: by a copy
  Mutex mutex_;
  std::vector<Connection> connections_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::softnic
