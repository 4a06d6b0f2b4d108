#include "app/server/perftest_service.h"

#include <iostream>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/perftest/run.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/export/formats.h"
#include "app/output/terminal.h"

namespace gdrperf::app {

PerftestService perftest_service(
    std::span<const TestSpec> specs, report::RateUnit unit, std::uint64_t max_memory_bytes) {
  return [specs = std::vector<TestSpec>(specs.begin(), specs.end()), unit, max_memory_bytes](
             proto::Channel& channel, const proto::Admission& admission, const std::atomic<bool>& stop, const engine::Terms& terms) {
    if (specs.size() != 1) {
      throw usage_error(fmt::format("{}: perftest's client has one size on a connection, {} were typed", channel.peer(), specs.size()),
                        fmt::format("give the {} that is typed there", flag<&TestSpec::size_bytes>()));
    }
    TestSpec spec = specs.front();
    spec.server = std::exchange(spec.client, EndSpec());
    proto::PerftestLink link(channel, admission, proto::PerftestRole::kServer, &stop);
    if (!link.greet()) throw peer_error(channel.peer() + ": is gdrperf, and spoke as perftest");
    const std::string what = fmt::format("{}: perftest {}: {} {}", channel.peer(), link.version(), to_string(spec.test), format_size(spec.size_bytes));
    say("serving " + what);
    engine::ClientTerms own;
    own.max_memory_bytes = max_memory_bytes;
    own.stop = &stop;
    own.account = terms.account;
    const report::RunRecord record = engine::serve_perftest(channel, link, spec, {own, unit, terms.max_time});
    for (const std::string& warning : record.measured.warnings) say("warning: " + warning);
    if (record.measured.bandwidth || record.measured.latency) {
      report::FormatContext context;
      context.rate_unit = unit;
      std::cout << report::parse_format("perftest")->render(std::span(&record, 1), context) << std::flush;
    }
    say(what + ": done");
  };
}

}  // namespace gdrperf::app
