#pragma once

#include <cstddef>

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// The fewest further sessions, on either side, with which ranks without any
/// overlap are significant at `level`; candidates rather than baseline where
/// both would do.
Needed sessions_needed(std::size_t baseline, std::size_t candidates, double level);

/// Further candidates after which samples like these, overlapping as they do,
/// may be expected to be significant at `level`: sessions count by the square of
/// the normal quantile. At least 1.
std::size_t candidates_for_overlap(std::size_t candidates, double p, double level);

}  // namespace gdrperf::compare
