#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cm/links/dialogue.h"
#include "cm/links/link.h"
#include "cm/links/loop.h"
#include "cm/state/ports.h"
#include "cm/state/table.h"
#include "cm/links/tcp_ports.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// The communication manager of this process: what stands behind
/// /dev/infiniband/rdma_cm. Made when a program first opens that. Thread-safe.
class Cm final : public CmReceiver, public CmTcpReceiver {
 public:
  /// Throws where it cannot be made.
  static Cm& get();
  /// Null: never made, or in a forked child.
  static Cm* current() noexcept;

  /// A new channel's descriptor. Empty, with errno.
  UniqueFd open(int flags) EXCLUDES(mutex_);

  Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }
  CmTable& table() REQUIRES(mutex_) { return table_; }
  CmPorts& ports() REQUIRES(mutex_) { return ports_; }
  CmDialogue& dialogue() REQUIRES(mutex_) { return dialogue_; }
  /// Tells the other end, and takes the id and its port away.
  void destroy(CmId& id) REQUIRES(mutex_);
  /// Destination of an id.
  struct Goal {
    std::uint16_t port_space = 0;
    CmAddress source;
    CmAddress destination;
    const Device* device = nullptr;
    bool remote = false;  ///< on another host
  };
  struct Reached {
    std::shared_ptr<CmLink> link;  ///< null: not reached
    bool silent = false;           ///< nobody answered; else nobody has the port
  };
  /// To the process that has the destination's port. May wait for it.
  Reached reach(const Goal& goal) EXCLUDES(mutex_);
  /// It has not been lost or closed since.
  bool open_link(const std::shared_ptr<CmLink>& link) REQUIRES(mutex_) { return links_.contains(link); }
  /// Closes a link of reach() that no id has.
  void drop_unused(const std::shared_ptr<CmLink>& link) REQUIRES(mutex_);

  void received(const std::shared_ptr<CmLink>& link, std::span<const std::uint8_t> bytes) override EXCLUDES(mutex_);
  void lost(const std::shared_ptr<CmLink>& link) override EXCLUDES(mutex_);
  void handed_over(UniqueFd socket) override { greet_cm(std::move(socket)); }
  Port port(std::uint16_t port_space, const CmAddress& address) override EXCLUDES(mutex_);
  void connected(UniqueFd socket) override EXCLUDES(mutex_);

 private:
  Cm();
  std::shared_ptr<CmLink> add_link(UniqueFd socket) EXCLUDES(mutex_);
  Reached reach_host(const Goal& goal) EXCLUDES(mutex_);
  /// Handles a request when there is a listener for it, or refuses it after a while.
  void wait_for_listener(const std::shared_ptr<CmLink>& link, const CmMessage& message,
                         std::chrono::steady_clock::time_point end) EXCLUDES(mutex_);
  /// To the process that has the destination's port on this host.
  UniqueFd connect_here(const Goal& goal) EXCLUDES(mutex_);
  void close_channel(std::uint64_t number) EXCLUDES(mutex_);
  void watch_channel(std::uint64_t number, std::uint32_t events) EXCLUDES(mutex_);
  static void before_fork() NO_THREAD_SAFETY_ANALYSIS;        // locks for the other two
  static void after_fork_parent() NO_THREAD_SAFETY_ANALYSIS;
  static void after_fork_child() NO_THREAD_SAFETY_ANALYSIS;
  void abandon() NO_THREAD_SAFETY_ANALYSIS;  // no other thread is left

  Mutex mutex_;
  CmLoop loop_;
  CmTable table_ GUARDED_BY(mutex_);
  CmPorts ports_ GUARDED_BY(mutex_);
  CmDialogue dialogue_ GUARDED_BY(mutex_);
  std::set<std::shared_ptr<CmLink>> links_ GUARDED_BY(mutex_);
  /// Those of links_ that reach() made, and the process at the other end; 0: on another host, or not to be seen.
  std::map<std::shared_ptr<CmLink>, pid_t> reached_ GUARDED_BY(mutex_);
  /// Links to processes that have spoken: one that has not may have a listener that goes before it takes the link.
  std::map<pid_t, std::weak_ptr<CmLink>> heard_ GUARDED_BY(mutex_);
  /// Ports that somebody had when this process last connected to them, and when that was.
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::chrono::steady_clock::time_point> had_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::softnic
