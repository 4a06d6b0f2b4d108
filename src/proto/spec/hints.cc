#include "gdrperf/proto/hints.h"

#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"

namespace gdrperf {

TphHints parse_hints(std::string_view text, std::string_view flag) {
  constexpr int kMostHint = 3, kMostTphCpu = 65535;
  const std::vector<std::string_view> parts = split(text, ',');
  const bool known = parts.size() == 1 || (parts.size() == 3 && (parts[1] == "volatile" || parts[1] == "persistent"));
  if (!known) {
    throw usage_error(fmt::format("{} '{:.40}': no processing hints", flag, text),
                      "give HINT (0 to 3), or HINT,volatile,CPU or HINT,persistent,CPU");
  }
  TphHints hints;
  hints.hint = static_cast<int>(parse_integer(std::string(parts[0]), flag, 0, kMostHint));
  if (parts.size() == 1) return hints;
  hints.memory = parts[1] == "persistent" ? 1 : 0;
  hints.cpu = static_cast<int>(parse_integer(std::string(parts[2]), flag, 0, kMostTphCpu));
  return hints;
}

}  // namespace gdrperf
