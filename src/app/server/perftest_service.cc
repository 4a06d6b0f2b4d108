#include "app/server/perftest_service.h"

#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/perftest/run.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/export/formats.h"
#include "gdrperf/export/perftest.h"
#include "app/output/terminal.h"

namespace gdrperf::app {

PerftestService perftest_service(
    std::span<const TestSpec> specs, report::RateUnit unit, std::uint64_t max_memory_bytes) {
  return [specs = std::vector<TestSpec>(specs.begin(), specs.end()), unit, max_memory_bytes](
             proto::Channel& channel, const proto::Admission& admission, const std::atomic<bool>& stop,
             const engine::Terms& terms) {
    if (specs.size() != 1) {
      throw usage_error(fmt::format("{}: perftest's client has one size on a connection, {} were typed", channel.peer(),
                                    specs.size()),
                        fmt::format("give the {} that is typed there", flag<&TestSpec::size_bytes>()));
    }
    TestSpec spec = specs.front();
    spec.server = std::exchange(spec.client, EndSpec());
    proto::PerftestLink link(channel, admission, proto::PerftestRole::kServer, &stop);
    if (!link.greet()) throw peer_error(channel.peer() + ": is gdrperf, and spoke as perftest");
    const std::string what = fmt::format("{}: perftest {}: {} {}", channel.peer(), link.version(), to_string(spec.test),
                                         format_size(spec.size_bytes));
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

namespace {

class ResultPrinter {
 public:
  explicit ResultPrinter(const OutputOptions& output)
      : figure_(report::perftest_figure(output.format_file)), json_(output.perftest_json), columns_(output.rate_unit) {
    context_.rate_unit = output.rate_unit;
    if (figure_) return;
    const std::string frame(36, '*');
    std::cout << fmt::format("\n{0}\n* Waiting for client to connect... *\n{0}\n", frame) << std::flush;
  }

  void print(const proto::Result& result) {
    const report::RunRecord record = report::record_of(result);
    std::cout << (figure_ ? figure_->render(std::span(&record, 1), context_) : columns_.add(record)) << std::flush;
    if (!json_.empty()) write_output(json_, report::perftest_json(record, context_.rate_unit));
  }

 private:
  std::optional<report::Format> figure_;
  std::string json_;
  report::FormatContext context_;
  report::PerftestColumns columns_;
};

}  // namespace

std::function<void(const proto::Result&)> perftest_results(const OutputOptions& output) {
  return [printer = std::make_shared<ResultPrinter>(output)](const proto::Result& result) { printer->print(result); };
}

}  // namespace gdrperf::app
