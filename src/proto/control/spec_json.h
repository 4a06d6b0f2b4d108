#pragma once

#include <nlohmann/json.hpp>

#include "gdrperf/proto/spec.h"
#include "proto/spec/json_reader.h"

namespace gdrperf::proto {

nlohmann::json end_to_json(const EndSpec& end);
EndSpec end_from_json(const JsonReader& reader);

/// A TestSpec on the wire: enumerations by name, times in nanoseconds, absent
/// stop rules left out.
nlohmann::json spec_to_json(const TestSpec& spec);

/// Inverse. Checks types and integer ranges only: whether the values make
/// sense together is gdrperf::validate's business.
TestSpec spec_from_json(const JsonReader& reader);

}  // namespace gdrperf::proto
