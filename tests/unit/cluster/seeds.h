#pragma once

#include <cstdint>

namespace gdrperf::cluster {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// How many seeds a test simulates. Sanitizers find the same with each, and need ten times as long; how often the judge
/// is right is counted without them.
constexpr std::uint64_t seeds(std::uint64_t without_sanitizers) { return kSanitized ? 2 : without_sanitizers; }

}  // namespace gdrperf::cluster
