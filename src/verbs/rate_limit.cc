#include "gdrperf/verbs/rate_limit.h"

#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::verbs {

std::string cannot_limit(const ibv_device_attr_ex& attr, ibv_qp_type type, double kbps) {
  const ibv_packet_pacing_caps& caps = attr.packet_pacing_caps;
  if (caps.qp_rate_limit_max == 0) return "it has no packet pacing (its qp_rate_limit_max is 0)";
  // The mask has no bit for QPs of a driver's own kind.
  if (type == IBV_QPT_DRIVER || (caps.supported_qpts >> type & 1) == 0)
    return "it has packet pacing, but not for QPs of this type";
  if (kbps >= caps.qp_rate_limit_min && kbps <= caps.qp_rate_limit_max) return {};
  return fmt::format("it paces a QP at {} to {} kb/s, not at {}", caps.qp_rate_limit_min, caps.qp_rate_limit_max,
                     plain_digits(kbps, 6));
}

void limit_rate(ibv_qp* qp, const RateLimit& limit, const std::string& device) {
  ibv_qp_rate_limit_attr attr{};
  attr.rate_limit = limit.kbps;
  attr.max_burst_sz = limit.burst_bytes;
  attr.typical_pkt_sz = limit.packet_bytes;
  if (const int error = ::ibv_modify_qp_rate_limit(qp, &attr); error != 0) {
    throw call_error(fmt::format("ibv_modify_qp_rate_limit({} kb/s)", limit.kbps), error > 0 ? error : errno, device);
  }
}

}  // namespace gdrperf::verbs
