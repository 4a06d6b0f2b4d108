#pragma once

#include <string>

#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// Loaded over idle, of a percentile; NaN where a figure is missing.
double loaded_ratio(const Measurement& measured, double Latency::*percentile);

/// Table of percentiles idle and loaded; "" without a load.
std::string under_load_text(const RunRecord& record, RateUnit unit);

}  // namespace gdrperf::report
