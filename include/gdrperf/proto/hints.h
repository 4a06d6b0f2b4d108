#pragma once

#include <string>
#include <string_view>

namespace gdrperf {

/// TLP processing hints (PCIe TPH) of host memory; -1: not asked for.
struct TphHints {
  int hint = -1;    ///< 0..3
  int memory = -1;  ///< 0 volatile, 1 persistent
  int cpu = -1;     ///< whose steering tag is used
};

/// "1" or "1,volatile,3": hint, memory and CPU. Throws usage_error, naming `flag`.
TphHints parse_hints(std::string_view text, std::string_view flag);

}  // namespace gdrperf
