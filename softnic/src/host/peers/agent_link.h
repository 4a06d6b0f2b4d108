#pragma once

#include <cstdint>
#include <memory>

#include "gdrperf/base/mutex.h"
#include "gdrperf/base/unique_fd.h"
#include "host/process/wire.h"
#include "shared/segment/layout.h"

namespace gdrperf::softnic {

struct Pieces;

/// This end of a peer's agent: a connection, and the memory that the data goes
/// through. Thread-safe; one copy at a time.
class AgentLink {
 public:
  /// Null when the process `peer_id` does not answer in two seconds.
  static std::unique_ptr<AgentLink> connect(std::uint32_t block, std::uint64_t own_id, std::uint64_t peer_id);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  /// Copies between the message and the peer's memory from `address` on, which
  /// is in `region` of its table. 0; ESRCH when there is no answer, for five
  /// seconds or ever; or what the peer's kernel said, EFAULT when the memory is
  /// not there.
  int copy_to(const Regions& regions, const MrShared& region, std::uint64_t address, const Pieces& from) noexcept;
  int copy_from(const Regions& regions, const MrShared& region, std::uint64_t address, const Pieces& to) noexcept;

  bool broken() const noexcept { return !socket_; }
  /// In a forked child.
  void abandon() { socket_.reset(); }

 private:
  AgentLink() = default;
  int ask(const CopyRequest& request) noexcept;
  int copy(CopyRequest request, const Pieces& pieces) noexcept;

  Mutex mutex_;
  UniqueFd socket_;
  std::uint8_t* bounce_ = nullptr;
};

}  // namespace gdrperf::softnic
