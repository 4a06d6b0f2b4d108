#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "gdrperf/proto/spec.h"
#include "gdrperf/stats/summary.h"
#include "gdrperf/verbs/device.h"

namespace gdrperf::engine {

/// Memory to register again and again.
struct RegistrationRun {
  std::string buffer = "host";  ///< kind
  Registration how = Registration::kAuto;
  bool odp = false;  ///< for on-demand paging
  std::uint64_t bytes = 4096;
  std::chrono::nanoseconds time{0};  ///< for so long, and at least kLeastRegistrations times
};
inline constexpr std::uint64_t kLeastRegistrations = 10;

struct RegistrationCost {
  std::string registration;  ///< how it was done: "host", "dmabuf", "peermem", ...
  std::uint64_t samples = 0;
  stats::Summary register_ns;
  stats::Summary release_ns;
};

/// Registers with rights of a message's target. Throws Error where that cannot be.
RegistrationCost measure_registration(const verbs::Context& device, const RegistrationRun& run);

}  // namespace gdrperf::engine
