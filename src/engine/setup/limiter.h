#pragma once

#include <string>

#include "gdrperf/engine/resolve.h"
#include "gdrperf/verbs/device.h"
#include "gdrperf/verbs/rate_limit.h"

namespace gdrperf::engine {

ibv_qp_type qp_type(Transport transport);

/// Who keeps the rate of that end: never kAuto. Throws Error(kEnvironment), naming device and capability, where the
/// device is to and cannot; `note` says so where it need not.
Limiter limiter_of(const ResolvedSpec& spec, conn::Side side, const verbs::Context& device, std::string& note);

/// Of each QP, where the device keeps the rate.
verbs::RateLimit limit_of_qp(const ResolvedSpec& spec, int mtu_bytes);

}  // namespace gdrperf::engine
