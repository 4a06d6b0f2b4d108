#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cm/links/loop.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

/// Transport of the communication manager's messages to another process.
namespace gdrperf::softnic {

class CmLink;

/// Receiver of what a link brings. Called by the thread of CmLoop.
class CmReceiver {
 public:
  virtual void received(const std::shared_ptr<CmLink>& link, std::span<const std::uint8_t> bytes) = 0;
  /// A connection of another host came with that.
  virtual void handed_over(UniqueFd socket) = 0;
  /// The other end is gone, or talks nonsense; nothing comes after this.
  virtual void lost(const std::shared_ptr<CmLink>& link) = 0;

 protected:
  ~CmReceiver() = default;
};

class CmLink {
 public:
  virtual ~CmLink() = default;
  /// Never blocks. What cannot be sent is told by CmReceiver::lost.
  virtual void send(const std::vector<std::uint8_t>& message) = 0;
  virtual void close() = 0;
  /// In a forked child: closes what was inherited, and nothing else.
  virtual void abandon() = 0;
};

/// To a process of this host, over its socket: SOCK_SEQPACKET, a message is a packet.
/// Thread-safe.
class CmUnixLink final : public CmLink, public std::enable_shared_from_this<CmUnixLink> {
 public:
  /// Begins to receive.
  static std::shared_ptr<CmLink> start(UniqueFd socket, CmLoop& loop, CmReceiver& receiver);
  CmUnixLink(UniqueFd socket, CmLoop& loop, CmReceiver& receiver);

  void send(const std::vector<std::uint8_t>& message) override EXCLUDES(mutex_);
  void close() override EXCLUDES(mutex_);
  void abandon() override NO_THREAD_SAFETY_ANALYSIS { socket_.reset(); }  // no other thread is left

 private:
  void handle(std::uint32_t events) EXCLUDES(mutex_);
  bool receive_one() EXCLUDES(mutex_);
  void flush() EXCLUDES(mutex_);
  bool try_send(const std::vector<std::uint8_t>& message) REQUIRES(mutex_);

  /// A process that takes nothing for so long is given up.
  static constexpr std::size_t kMaxUnsent = 1u << 16;
  static constexpr int kBatch = 64;

  CmLoop& loop_;
  CmReceiver& receiver_;
  Mutex mutex_;
  UniqueFd socket_ GUARDED_BY(mutex_);
  std::uint64_t token_ GUARDED_BY(mutex_) = 0;
  std::deque<std::vector<std::uint8_t>> unsent_ GUARDED_BY(mutex_);
};

}  // namespace gdrperf::softnic
