#pragma once

#include <nlohmann/json.hpp>

#include "gdrperf/proto/messages.h"
#include "proto/spec/json_reader.h"

namespace gdrperf::proto {

void write_led(nlohmann::json& out, const Led& led);
/// Throws peer_error naming the member.
Led read_led(const JsonReader& in);

}  // namespace gdrperf::proto
