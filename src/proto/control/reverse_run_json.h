#pragma once

#include <nlohmann/json.hpp>

#include "gdrperf/proto/messages.h"
#include "proto/spec/json_reader.h"

namespace gdrperf::proto {

void write_reverse_run(nlohmann::json& out, const ReverseRun& led);
/// Throws peer_error naming the member.
ReverseRun read_reverse_run(const JsonReader& in);

}  // namespace gdrperf::proto
