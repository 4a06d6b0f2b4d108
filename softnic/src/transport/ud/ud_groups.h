#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/device.h"
#include "gdrperf/base/unique_fd.h"
#include "host/process/process.h"
#include "transport/ud/ud_targets.h"

namespace gdrperf::softnic {

/// Datagrams of a QP to the members of groups on other hosts. Under the send queue's lock.
class UdGroups {
 public:
  explicit UdGroups(const Device& device) noexcept : device_(device) {}

  /// What the network does not take is lost.
  void send(const Datagram& datagram, const Pieces& message, const Part& part) noexcept;
  void clear() noexcept { sockets_.clear(); }

 private:
  const Device& device_;
  std::map<bool, UniqueFd> sockets_;  ///< by whether they are for IPv4
  std::string secret_;
  std::vector<std::uint8_t> out_;
};

/// Datagrams of other hosts to the group reach the QP from now on, where its device has
/// tcp=. Where that cannot be, it is said on stderr, and the group has the members of this host.
void take_group(Process& process, const Device& device, const ibv_gid& group, std::uint32_t qpn);
/// And no more.
void leave_group(Process& process, const Device& device, const ibv_gid& group, std::uint32_t qpn);

}  // namespace gdrperf::softnic
