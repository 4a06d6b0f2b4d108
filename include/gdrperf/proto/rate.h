#pragma once

#include <string>
#include <string_view>

#include "gdrperf/proto/spec.h"

namespace gdrperf {

/// Messages, or payload, that are due per second: one of them is set.
struct Rate {
  double per_s = 0;
  double bytes_per_s = 0;
};

/// "100000", "10Gb/s", "1.25GB/s". Throws usage_error naming `flag`.
Rate parse_offered_rate(const std::string& text, std::string_view flag);

/// Stream beside a latency test: a share, up to 1, of what it carries alone, or a rate.
struct Load {
  double share = 0;  ///< 0: `rate` says
  Rate rate;
};

/// "50%", or as parse_offered_rate(). Throws usage_error naming `flag`.
Load parse_load(const std::string& text, std::string_view flag);

/// The bandwidth test that loads the link of latency test `spec`, without a rate.
TestSpec stream_beside(const TestSpec& spec);

/// The latency test of small messages that goes beside bandwidth test `spec`, over RC between host memory or that of
/// `spec`.
TestSpec latency_beside(const TestSpec& spec);

}  // namespace gdrperf
