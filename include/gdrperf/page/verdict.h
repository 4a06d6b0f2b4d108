#pragma once

#include <string>
#include <vector>

#include "gdrperf/page/finding.h"
#include "gdrperf/page/page.h"

namespace gdrperf::page {

struct Verdict {
  Level level = Level::kGood;
  std::string headline;
  std::vector<Finding> findings;  ///< the worst first
};

/// From this share of the ceiling on, a path is fine; below the other it is in trouble.
inline constexpr double kFineShare = 0.9;
inline constexpr double kPoorShare = 0.7;
/// A pair below this share of the median of those with the same relation stands out.
inline constexpr double kAlikeShare = 0.9;

/// Verdict in words: which pairs are fine, which are not, why, and what to do.
Verdict judge(const Page& page);

}  // namespace gdrperf::page
