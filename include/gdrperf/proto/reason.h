#pragma once

#include <string>
#include <system_error>

namespace gdrperf::proto {

/// An errno in words.
inline std::string reason_of(int error) { return std::generic_category().message(error); }

}  // namespace gdrperf::proto
