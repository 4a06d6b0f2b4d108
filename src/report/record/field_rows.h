#pragma once

#include <span>
#include <string_view>

#include "gdrperf/report/fields.h"

namespace gdrperf::report {

/// The name of the row in whose place the settings stand that have none of their own.
inline constexpr std::string_view kOtherSettings = "(other settings)";

/// The rows as they are written down: what of a setting's row is left open comes
/// from the option table.
std::span<const Field> field_rows();

}  // namespace gdrperf::report
