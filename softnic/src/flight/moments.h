#pragma once

#include <cstdint>

#include "gdrperf/base/clock.h"
#include "model/link.h"
#include "shared/segment/request.h"

/// Common state of the parts of a flight.
namespace gdrperf::softnic {

/// Messages up to this size are moved as a whole when they arrive.
inline constexpr std::uint64_t kWhole = 512;
/// Rate that copying is taken to have when a piece has to be done by some time.
inline constexpr std::uint64_t kCopyBytesPerNs = 6;

inline const Clock& the_clock() noexcept {
  static const Clock& clock = Clock::get();
  return clock;
}
inline Instant instant() noexcept { return instant_now(the_clock()); }

/// Counts of requests wrap around.
constexpr bool before(std::uint32_t one, std::uint32_t other) {
  return static_cast<std::int32_t>(one - other) < 0;
}

}  // namespace gdrperf::softnic
