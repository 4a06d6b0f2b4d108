#pragma once

#include <string>

#include <fmt/format.h>

#include "gdrperf/base/flags.h"

namespace gdrperf::cluster {

/// Flags to type where no launcher tells the ranks.
inline std::string type_ranks() {
  return fmt::format("type {}, {} and {}", flags::kRank, flags::kRanks, flags::kRoot);
}

}  // namespace gdrperf::cluster
