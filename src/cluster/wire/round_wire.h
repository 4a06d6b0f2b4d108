#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/wire/wire.h"

namespace gdrperf::app {

// A round's messages are bytes, not JSON: with 10,000 ranks of 8 NICs rank 0 writes and reads
// 80,000 links of it while all others wait. Integers are little-endian, rates 32-bit floats.

std::string pack_measure(const Measure& order);
std::string pack_rates(const Rates& rates);

/// A packed Measure or Rates; nothing where `text` does not begin as one. Throws peer_error for what the functions
/// above have not made.
std::optional<ClusterMessage> unpack_round(std::string_view text);

}  // namespace gdrperf::app
