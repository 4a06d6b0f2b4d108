#pragma once

#include <string>
#include <string_view>

#include "compare/document_scan.h"

namespace gdrperf::compare {

/// Fields that doubt_of() reads beside those that name a cell.
bool is_trust_field(std::string_view name);

/// Why a run's figure cannot be trusted, as "unstable (drift)"; "" where nothing speaks against it. A run without these
/// fields, as another program's, is trusted.
std::string doubt_of(const Fields& run);

}  // namespace gdrperf::compare
