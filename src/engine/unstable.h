#pragma once

#include <span>

#include "gdrperf/report/record.h"

namespace gdrperf::engine {

/// Marks a run whose cap came before its precision: unstable, with the likely
/// reason from the pattern of `batches` (after the warm-up, in time order) and a
/// warning that says what helps. `what`: "" or the figure with a blank behind it.
void mark_unstable(report::Measurement& measured, std::span<const double> batches, const char* what,
                   double precision, double cap_s);

}  // namespace gdrperf::engine
