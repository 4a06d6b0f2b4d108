#include "engine/setup/limiter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "gdrperf/base/error.h"

namespace gdrperf::engine {
namespace {

double kbps_of_qp(const ResolvedSpec& spec) {
  return rate_of(spec) * static_cast<double>(spec.size_bytes) * 8e-3 / spec.qps;
}

}  // namespace

ibv_qp_type qp_type(Transport transport) {
  switch (transport) {
    case Transport::kUc: return IBV_QPT_UC;
    case Transport::kUd: return IBV_QPT_UD;
    case Transport::kXrc: return IBV_QPT_XRC_SEND;
    case Transport::kDc:
    case Transport::kSrd: return IBV_QPT_DRIVER;
    case Transport::kRc: break;
  }
  return IBV_QPT_RC;
}

Limiter limiter_of(const ResolvedSpec& spec, conn::Side side, const verbs::Context& device, std::string& note) {
  if (spec.limiter == Limiter::kSoftware || !spec.initiates(side)) return Limiter::kSoftware;
  const std::string asked = flag<&TestSpec::limiter>();
  std::string why = answers_carry_data(spec)
                        ? "the data of reads and atomics comes in answers, which no device paces"
                        : verbs::cannot_limit(device.attr(), qp_type(spec.transport), std::round(kbps_of_qp(spec)));
  if (why.empty()) return Limiter::kHardware;
  why = fmt::format("{}: {}", device.name(), why);
  if (spec.limiter == Limiter::kHardware) {
    throw Error(ExitCode::kEnvironment, fmt::format("{} hw: {}", asked, why),
                fmt::format("leave it out, or give {} auto: the sender keeps the rate", asked));
  }
  note = fmt::format("{} auto: the sender keeps the rate, not the device: {}", asked, why);
  return Limiter::kSoftware;
}

verbs::RateLimit limit_of_qp(const ResolvedSpec& spec, int mtu_bytes) {
  verbs::RateLimit limit;
  limit.kbps = static_cast<std::uint32_t>(std::llround(kbps_of_qp(spec)));
  const double burst = static_cast<double>(spec.size_bytes) * spec.burst / spec.qps;
  if (spec.burst > 1)
    limit.burst_bytes =
        static_cast<std::uint32_t>(std::min(burst, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
  limit.packet_bytes =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(spec.size_bytes, static_cast<std::uint64_t>(mtu_bytes)));
  return limit;
}

}  // namespace gdrperf::engine
