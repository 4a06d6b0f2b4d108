#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/peers/agent.h"
#include "host/process/control.h"
#include "host/process/groups.h"
#include "host/process/local.h"
#include "host/peers/peer.h"
#include "host/process/ports.h"
#include "host/peers/stranger.h"
#include "memory/move.h"
#include "remote/hub.h"
#include "shared/segment/layout.h"
#include "shared/segment/segment.h"

namespace gdrperf::softnic {

/// Hands out table indices 1..limit-1 in turn, so that a freed index is reused last: a number that was just
/// given back must not mean something else at once.
class IndexPool {
 public:
  explicit IndexPool(std::uint32_t limit) : used_(limit, false) {}
  /// 0 when all are taken.
  std::uint32_t take();
  void give_back(std::uint32_t index);

 private:
  Mutex mutex_;
  std::vector<bool> used_;
  std::uint32_t next_ = 1;
};

/// This process as its peers know it: its block of QP numbers, its segment,
/// its control thread, and who is connected. Created when the first software
/// device is opened, never destroyed. A forked child starts without one; what
/// it inherited of its parent's is closed and cut off.
class Process final : public LocalProcess {
 public:
  /// Creates it when there is none. Throws Error(kEnvironment).
  static Process& get();
  /// False for objects that a forked child inherited.
  static bool is_current(const Process* process) noexcept;
  /// Takes its locks before a fork. Whoever does so with locks that are taken before these asks for it
  /// first: what was registered last is called first.
  static void watch_forks();

  std::uint64_t id() const noexcept override { return id_; }
  std::uint32_t block() const noexcept { return block_; }
  Segment& segment() noexcept override { return memory_.segment(); }
  /// Its regions: what it knows of them is its own.
  const Regions& regions() const noexcept { return regions_; }
  MrShared& known_region(std::uint32_t index) noexcept { return known_[index]; }
  /// The region or window may be used under `key` from now on, also by peers.
  void publish_region(std::uint32_t index, std::uint32_t key) noexcept;
  SegmentMemory& memory() noexcept { return memory_; }
  Control& control() noexcept { return control_; }
  PageMover& mover() noexcept { return mover_; }
  Ports& ports() noexcept override { return ports_; }
  Agents& agents() noexcept override { return agents_; }
  Strangers& strangers() noexcept override { return strangers_; }
  Hub& hub() noexcept { return hub_; }
  Groups& groups() noexcept { return groups_; }
  void take_connection(UniqueFd socket) override;
  /// Passes a TCP connection on to the process of this user that has the QP. False: there is none.
  bool hand_over(std::uint32_t qpn, int socket);
  int segment_fd() noexcept override { return memory_.fd(); }
  int window_fd() noexcept override { return mover_.fd(); }
  /// Whether this process' executors may leave the fence to the owner.
  bool barrier_registered() const noexcept { return barrier_registered_; }

  /// The process behind `block`, connected to when not yet known; null when it
  /// cannot be reached. Blocks up to two seconds.
  std::shared_ptr<Peer> peer(std::uint32_t block, const PeerPolicy& policy);
  void forget_gone_peers() override;

  void for_each_context(const std::function<void(LocalContext&)>& visit) override;
  void add(LocalContext* context);
  void remove(LocalContext* context);
  /// Numbers a channel; its descriptor is what peers get under that number.
  std::uint32_t add_channel(int fd);
  void remove_channel(std::uint32_t number);
  int channel_fd(std::uint32_t number) override;

  /// Makes the QP known to peers' messages and to the control thread.
  void publish(LocalQp* qp, std::uint32_t index);
  void withdraw(std::uint32_t index);
  void for_each_qp(const std::function<void(LocalQp&)>& visit) override;
  void with_qp(std::uint32_t index, const std::function<void(LocalQp&)>& visit) override;

  /// Waits until no peer executes on any QP of protection domain `pd` with
  /// what it had looked up before the call.
  void settle(std::uint32_t pd);
  /// The same for all QPs, of all domains, and for receives being flushed.
  void settle_all();
  /// Time that a peer that is stopped in the middle is waited for.
  static constexpr std::chrono::seconds kSettleLimit{5};

  /// Waits until nobody acts on that QP over a lane, until `limit`; repairs what the
  /// dead left. Behind a heavy barrier. False: gave up.
  bool await_lanes(LocalQp& qp, std::uint32_t index, std::chrono::steady_clock::time_point limit);
  void free_lanes_of(std::uint64_t process_id) override;

  /// Full memory barrier on every CPU that runs an executor.
  void heavy_barrier() noexcept;

  IndexPool qp_indices{kMaxQps};
  IndexPool cq_indices{kMaxCqs};
  IndexPool mr_indices{kMaxMrs};
  IndexPool xrc_srq_indices{kMaxXrcSrqs};
  std::atomic<std::uint32_t> next_pd{1};
  std::atomic<std::uint8_t> next_key{1};
  /// Send requests of each QP whose completion was polled, or that came
  /// before one whose completion was.
  std::array<std::atomic<std::uint32_t>, kMaxQps> sq_released{};

 private:
  Process();
  void claim_block();
  bool claim(std::uint32_t block);
  bool claim_beside(std::uint32_t block);
  // Locks taken before a fork are released behind it; a child uses nothing that it inherited.
  static void before_fork() NO_THREAD_SAFETY_ANALYSIS;
  static void after_fork_parent() NO_THREAD_SAFETY_ANALYSIS;
  static void after_fork_child() NO_THREAD_SAFETY_ANALYSIS;
  void abandon() NO_THREAD_SAFETY_ANALYSIS;

  SegmentMemory memory_;
  MrShared* known_ = nullptr;  ///< kMaxMrs
  Regions regions_;
  PageMover mover_;
  UniqueFd listener_;
  std::uint64_t id_ = 0;
  std::uint32_t block_ = 0;
  bool barrier_registered_ = false;
  Control control_;
  Ports ports_{control_};
  Agents agents_{regions_, id_};
  Strangers strangers_{id_};
  Groups groups_{memory_.segment()};
  Hub hub_;

  Mutex mutex_;
  std::vector<std::shared_ptr<Peer>> peers_ GUARDED_BY(mutex_);
  std::vector<LocalContext*> contexts_ GUARDED_BY(mutex_);
  std::vector<int> channels_ GUARDED_BY(mutex_);
  Mutex qps_mutex_;
  /// By index: the control thread goes over all there are with each message that it sees to.
  std::map<std::uint32_t, LocalQp*> qps_ GUARDED_BY(qps_mutex_);
  /// While forking: the child closes its end when it has its own pages.
  int fork_pipe_[2] = {-1, -1};
};

}  // namespace gdrperf::softnic
