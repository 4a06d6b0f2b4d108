#pragma once

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace gdrperf::conn {

// Owners of librdmacm's objects: the channel outlives its ids.
struct DestroyChannel {
  void operator()(rdma_event_channel* channel) const noexcept { rdma_destroy_event_channel(channel); }
};
struct DestroyId {
  void operator()(rdma_cm_id* id) const noexcept { rdma_destroy_id(id); }
};
struct AckEvent {
  void operator()(rdma_cm_event* event) const noexcept { rdma_ack_cm_event(event); }
};
using EventChannel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
using CmId = std::unique_ptr<rdma_cm_id, DestroyId>;
using Event = std::unique_ptr<rdma_cm_event, AckEvent>;

/// As a socket address, for rdma_cm.
inline sockaddr_storage address_of(const ibv_gid& gid, bool ipv4, int port) {
  sockaddr_storage storage{};
  if (ipv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&in.sin_addr, gid.raw + 12, 4);
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&in.sin6_addr, gid.raw, 16);
    std::memcpy(&storage, &in, sizeof in);
  }
  return storage;
}

inline bool is_ipv4_mapped(const ibv_gid& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

}  // namespace gdrperf::conn
