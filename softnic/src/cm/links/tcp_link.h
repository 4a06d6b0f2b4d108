#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cm/links/link.h"
#include "cm/links/loop.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {

/// To a process on another host, over TCP: each message has its length in front, in
/// two bytes, little-endian. Thread-safe.
class CmTcpLink final : public CmLink, public std::enable_shared_from_this<CmTcpLink> {
 public:
  /// Begins to receive on a connection that was greeted.
  static std::shared_ptr<CmLink> start(UniqueFd socket, CmLoop& loop, CmReceiver& receiver);
  CmTcpLink(UniqueFd socket, CmLoop& loop, CmReceiver& receiver);

  void send(const std::vector<std::uint8_t>& message) override EXCLUDES(mutex_);
  void close() override EXCLUDES(mutex_);
  void abandon() override NO_THREAD_SAFETY_ANALYSIS { socket_.reset(); }  // no other thread is left

 private:
  void handle(std::uint32_t events) EXCLUDES(mutex_);
  bool receive() EXCLUDES(mutex_);
  bool take_messages() EXCLUDES(mutex_);
  void flush() REQUIRES(mutex_);

  /// A process that takes nothing for so long is given up.
  static constexpr std::size_t kMaxUnsent = 1u << 20;

  CmLoop& loop_;
  CmReceiver& receiver_;
  Mutex mutex_;
  UniqueFd socket_ GUARDED_BY(mutex_);
  std::uint64_t token_ GUARDED_BY(mutex_) = 0;
  std::string unsent_ GUARDED_BY(mutex_);
  std::vector<std::uint8_t> in_;  ///< the loop's thread alone
};

}  // namespace gdrperf::softnic
