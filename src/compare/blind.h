#pragma once

#include "gdrperf/compare/judge.h"

namespace gdrperf::compare {

/// Takes "ok" back where the limit is wider than `settings.sensitivity`.
void call_blind(CellResult& cell, const Settings& settings);

}  // namespace gdrperf::compare
