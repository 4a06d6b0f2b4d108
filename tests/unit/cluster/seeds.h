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

#if defined(__OPTIMIZE__)
inline constexpr bool kOptimized = true;
#else
inline constexpr bool kOptimized = false;
#endif

/// How many seeds a test simulates: all of them where that takes a second. Sanitizers find the same with each, and need
/// ten times as long, as does a library whose assertions nothing optimizes; how often the judge is right is counted
/// without them.
constexpr std::uint64_t seeds(std::uint64_t all) { return kSanitized ? 2 : kOptimized ? all : all / 4 + 1; }

}  // namespace gdrperf::cluster
