#include "transport/rc/grh.h"

#include <arpa/inet.h>

#include <cstring>

namespace gdrperf::softnic {
namespace {

constexpr std::uint32_t kIpv4Offset = 20;
constexpr std::uint8_t kNextIsTransport = 0x1b;
constexpr std::uint8_t kNextIsUdp = 17;
constexpr std::uint8_t kHops = 64;
/// BTH and DETH in front of the payload, ICRC behind it.
constexpr std::uint32_t kTransportBytes = 12 + 8 + 4;
constexpr std::uint32_t kUdpBytes = 8;

void put16(std::uint8_t* to, std::uint32_t value) noexcept {
  to[0] = static_cast<std::uint8_t>(value >> 8);
  to[1] = static_cast<std::uint8_t>(value);
}

std::uint16_t checksum(const std::uint8_t* header) noexcept {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

ibv_gid mapped(const std::uint8_t* address) noexcept {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, address, 4);
  return gid;
}

}  // namespace

void write_grh(const Route& route, std::uint32_t payload_bytes, std::uint8_t (&grh)[kGrhBytes]) noexcept {
  std::memset(grh, 0, sizeof grh);
  const bool udp = route.kind.type == IBV_GID_TYPE_ROCE_V2;
  const std::uint32_t behind = kTransportBytes + (udp ? kUdpBytes : 0) + ((payload_bytes + 3) & ~3u);
  if (!route.kind.ipv4) {
    grh[0] = 0x60;
    put16(grh + 4, behind);
    grh[6] = udp ? kNextIsUdp : kNextIsTransport;
    grh[7] = kHops;
    std::memcpy(grh + 8, route.from.raw, 16);
    std::memcpy(grh + 24, route.to.raw, 16);
    return;
  }
  std::uint8_t* const ip = grh + kIpv4Offset;
  ip[0] = 0x45;
  put16(ip + 2, 20 + behind);
  ip[6] = 0x40;  // not to be cut up
  ip[8] = kHops;
  ip[9] = kNextIsUdp;
  std::memcpy(ip + 12, route.from.raw + 12, 4);
  std::memcpy(ip + 16, route.to.raw + 12, 4);
  put16(ip + 10, checksum(ip));
}

bool read_grh(const std::uint8_t (&grh)[kGrhBytes], Route& route) noexcept {
  const std::uint8_t* const ip = grh + kIpv4Offset;
  // 20 bytes of nothing do not say which it is; the sum tells.
  if (ip[0] == 0x45 && checksum(ip) == 0) {
    route = {mapped(ip + 12), mapped(ip + 16), {IBV_GID_TYPE_ROCE_V2, true}};
    return true;
  }
  if (grh[0] >> 4 != 6) return false;
  std::memcpy(route.from.raw, grh + 8, 16);
  std::memcpy(route.to.raw, grh + 24, 16);
  route.kind = {grh[6] == kNextIsUdp ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1, false};
  return true;
}

}  // namespace gdrperf::softnic
