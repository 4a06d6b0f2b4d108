#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "shared/segment/layout.h"

/// The 40 bytes in front of a datagram in the receive's memory: a global routing
/// header (IPv6's layout), or for IPv4 20 bytes of nothing and IPv4's header.
namespace gdrperf::softnic {

inline constexpr std::uint32_t kGrhBytes = 40;

struct Route {
  ibv_gid from;
  ibv_gid to;
  GidKind kind;
};

void write_grh(const Route& route, std::uint32_t payload_bytes, std::uint8_t (&grh)[kGrhBytes]) noexcept;
/// False: these 40 bytes are no such header.
bool read_grh(const std::uint8_t (&grh)[kGrhBytes], Route& route) noexcept;

}  // namespace gdrperf::softnic
