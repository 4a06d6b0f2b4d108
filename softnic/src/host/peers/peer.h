#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "device/config.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/peers/agent_link.h"
#include "host/peers/stranger.h"
#include "host/process/wire.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

/// Another process on this host, reached through its socket: its segment and
/// its window mapped here. Thread-safe. Once `dead` it stays dead; a process
/// that takes over the block is another Peer.
class Peer {
 public:
  /// Connects to the process that owns `block`; null when there is none, it is
  /// a user's that `policy` does not admit, or it does not answer within two seconds.
  static std::shared_ptr<Peer> connect(std::uint32_t block, std::uint64_t own_process_id, const PeerPolicy& policy);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::uint32_t block() const noexcept { return block_; }
  Segment& segment() noexcept { return *segment_; }
  /// Address at which the peer's moved pages are mapped; null when they are not.
  std::uint8_t* window() const noexcept { return window_; }
  int pid() const noexcept { return pid_; }
  std::uint64_t id() const noexcept { return id_; }
  int socket() const noexcept { return socket_.get(); }
  /// Not null: the process is another user's, and there is no segment of it here.
  StrangerLink* stranger() noexcept { return stranger_.get(); }
  /// A device with this policy has to do with the peer.
  bool suits(const PeerPolicy& policy) const { return stranger_ == nullptr || policy.admits(user_); }

  bool dead() const noexcept { return dead_.load(std::memory_order_relaxed); }
  const std::atomic<bool>* dead_flag() const noexcept { return &dead_; }
  void mark_dead() noexcept { dead_.store(true, std::memory_order_relaxed); }
  /// Looks at the socket: true when the process is gone.
  bool gone() noexcept;

  /// Finds out whether the kernel copies to and from the peer (`may_ask`: it may
  /// be asked), and gets the peer's agent where it does not, or where the peer has GPU memory, which the kernel does
  /// not copy, and this process no CUDA, or CUDA does not share it. May block for two seconds, and needs the peer's
  /// control thread: under no lock.
  void find_way(bool may_ask);
  /// The peer's agent; null where there is none.
  AgentLink* agent() noexcept { return agent_.load(std::memory_order_acquire); }
  /// The kernel said that it does not copy.
  bool kernel_refuses() const noexcept { return kernel_refuses_.load(std::memory_order_relaxed); }
  /// In a forked child: closes what was inherited.
  void abandon() NO_THREAD_SAFETY_ANALYSIS;

  /// Asks for a completion channel's eventfd, once. Blocks up to two seconds.
  void fetch_channel(std::uint32_t number);
  /// Raises an event on the peer's channel.
  void raise(std::uint32_t number);
  /// One-way message.
  void tell(WireKind kind, std::uint32_t number, std::uint32_t event);

 private:
  Peer() = default;
  bool ask_consent();

  std::uint32_t block_ = 0;
  std::uint64_t own_process_id_ = 0;
  std::uint64_t id_ = 0;  ///< of the peer's process
  UniqueFd socket_;
  std::uint32_t user_ = 0;
  std::unique_ptr<StrangerLink> stranger_;
  Segment* segment_ = nullptr;
  std::uint8_t* window_ = nullptr;
  int pid_ = 0;
  std::atomic<bool> dead_{false};
  std::atomic<bool> kernel_refuses_{false};
  std::atomic<bool> mute_{false};  ///< its socket is full, and it does not read
  std::atomic<AgentLink*> agent_{nullptr};
  std::vector<std::unique_ptr<AgentLink>> agents_ GUARDED_BY(agent_mutex_);  ///< all there were: one may be in use
  Mutex agent_mutex_;
  Mutex request_mutex_;
  Mutex channel_mutex_;
  std::map<std::uint32_t, UniqueFd> channels_ GUARDED_BY(channel_mutex_);
};

}  // namespace gdrperf::softnic
