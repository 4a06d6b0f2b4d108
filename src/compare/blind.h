#pragma once

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// The change for the worse, as a share, that would show 19 times in 20.
double visible_change(const CellResult& cell);

/// Takes "ok" back where that is beyond `settings.sensitivity`.
void call_blind(CellResult& cell, const Settings& settings);

}  // namespace gdrperf::compare
