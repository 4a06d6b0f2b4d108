#pragma once

#include <cstdint>
#include <span>

#include "app/server/server.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/console.h"

namespace gdrperf::app {

/// Serves a client of perftest with what was typed at this end, as perftest's own server would: `specs`, whose client's end is
/// this one, must be of one size. Prints perftest's columns, and throws Error where the run fails.
PerftestService perftest_service(
    std::span<const TestSpec> specs, report::RateUnit unit,
    std::uint64_t max_memory_bytes);

}  // namespace gdrperf::app
