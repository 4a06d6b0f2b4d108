#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/page/page.h"

namespace gdrperf::page {

enum class Level { kGood, kNote, kWarn, kBad };
/// "good", "note", "warn", "bad".
std::string_view to_string(Level level);

/// One thing to know, in words.
struct Finding {
  Level level = Level::kNote;
  std::string subject;  ///< a pair, a file, "" for all
  std::string text;
  std::string todo;  ///< what to do about it; "" nothing
};

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
