#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace gdrperf::softnic {

/// The QP number that datagrams to a multicast group are sent to (specification, 10.5.1).
inline constexpr std::uint32_t kMulticastQpn = 0xffffff;

inline bool is_mapped_ipv4(const ibv_gid& gid) noexcept {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(std::begin(kMapped), std::end(kMapped), gid.raw);
}

/// An IPv6 multicast address, or one of IPv4 as a GID of RoCE v2 has it.
inline bool is_multicast(const ibv_gid& gid) noexcept {
  return gid.raw[0] == 0xff || ((gid.raw[12] & 0xf0) == 0xe0 && is_mapped_ipv4(gid));
}

}  // namespace gdrperf::softnic
