#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace gdrperf::verbs {

/// What a device is to keep a QP's sends to (ibv_modify_qp_rate_limit(3)).
struct RateLimit {
  std::uint32_t kbps = 0;         ///< 1000 bits per second
  std::uint32_t burst_bytes = 0;  ///< that may leave at once; 0: the device's choice
  std::uint16_t packet_bytes = 0;  ///< of a typical packet; 0: not known
};

/// "" where QPs of this type can be kept to `kbps` (ibv_query_device_ex(3), packet_pacing_caps); else why not.
std::string cannot_limit(const ibv_device_attr_ex& attr, ibv_qp_type type, double kbps);

/// Of a QP in RTS. Throws Error(kEnvironment), naming `device`, where the driver refuses.
void limit_rate(ibv_qp* qp, const RateLimit& limit, const std::string& device);

}  // namespace gdrperf::verbs
