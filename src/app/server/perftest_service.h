#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "app/output/output.h"
#include "app/server/server.h"
#include "gdrperf/proto/messages.h"
#include "gdrperf/proto/spec.h"
#include "gdrperf/report/console.h"

namespace gdrperf::app {

/// Serves a client of perftest with what was typed at this end, as perftest's own server would: `specs`, whose client's
/// end is this one, must be of one size. Prints perftest's columns, and throws Error where the run fails.
PerftestService perftest_service(
    std::span<const TestSpec> specs, report::RateUnit unit,
    std::uint64_t max_memory_bytes);

/// Prints what clients of gdrperf measured as perftest's server does: its columns, or the one figure of --output, and
/// the file of --out_json. Says first that it waits, as perftest does.
std::function<void(const proto::Result&)> perftest_results(const OutputOptions& output);

}  // namespace gdrperf::app
