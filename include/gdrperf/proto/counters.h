#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gdrperf {

/// Counters of a device's port by name, or by how much they rose.
using Counters = std::map<std::string, std::uint64_t>;

/// Counters that rose from `before` to `after`, and by how much. One that fell was reset, and is left out.
Counters risen(const Counters& before, const Counters& after);

}  // namespace gdrperf
