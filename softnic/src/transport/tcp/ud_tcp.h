#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "device/device.h"
#include "gdrperf/base/unique_fd.h"
#include "remote/frame.h"
#include "transport/ud/ud_targets.h"

namespace gdrperf::softnic {

/// Datagrams of a QP to other hosts: a TCP connection for each process that they go
/// to, made with the first one, on which they follow each other. Under the send
/// queue's lock.
class UdTcp {
 public:
  explicit UdTcp(const Device& device) noexcept : device_(device) {}

  /// True where that address is on another host.
  bool is_for(const ibv_gid& gid) noexcept {
    if (device_.config.tcp_port == 0) [[likely]] return false;
    return is_elsewhere(gid);
  }
  /// Waits for room for a moment; a datagram that finds none, or nobody, is lost.
  void send(const Datagram& datagram, std::uint32_t qpn, Pieces& message, const Part& part) noexcept;
  void clear() noexcept { links_.clear(); }

 private:
  using Gid = std::array<std::uint8_t, 16>;
  struct Link {
    UniqueFd socket;
    std::uint64_t absent_until_ns = 0;  ///< nobody is asked before
  };
  bool is_elsewhere(const ibv_gid& gid) noexcept;
  bool connect(Link& link, const Datagram& datagram, std::uint32_t qpn) noexcept;
  bool write(Link& link, const Frame& frame, const Pieces& message) noexcept;

  const Device& device_;
  std::map<Gid, bool> elsewhere_;
  /// By both ends' addresses and the block of the other end's QP numbers.
  std::map<std::pair<std::pair<Gid, Gid>, std::uint32_t>, Link> links_;
  std::vector<std::uint8_t> bounce_;  ///< of a message in GPU memory
};

}  // namespace gdrperf::softnic
