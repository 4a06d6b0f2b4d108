#pragma once

#include <nlohmann/json.hpp>

#include "gdrperf/proto/messages.h"
#include "proto/spec/json_reader.h"

namespace gdrperf::proto {

/// Of one run, in messages.
inline constexpr std::size_t kMaxQps = 1u << 16;

nlohmann::json endpoint_to_json(const Endpoint& e);

/// Throws peer_error naming the member that is missing or out of range.
Endpoint endpoint_from_json(const JsonReader& in);

}  // namespace gdrperf::proto
