#pragma once

#include <string>
#include <string_view>

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

}  // namespace gdrperf::page
