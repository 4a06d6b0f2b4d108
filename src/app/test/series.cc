#include "app/test/series.h"

#include <chrono>
#include <string>

#include "app/client/parts.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {

void check_series(const TestOptions& options) {
  const bool intervals = options.interval_s > 0 || !options.listen_metrics.empty();
  const std::string typed = options.interval_s > 0 ? "--interval" : intervals ? "--listen-metrics" : "--samples";
  if (options.spec.reverse && intervals) {
    throw usage_error(typed + ": in a reversed run the server counts, and reports only when the run is over",
                      "leave one of them out");
  }
  if (has_parts(options.spec) && options.spec.verify_seed && intervals) {
    throw usage_error(typed + ": verified laps of runs at the same time have no time in common between them",
                      "leave one of them out");
  }
}

void add_series(CLI::App& command, TestOptions& options) {
  constexpr const char* kGroup = "Output";
  constexpr double kLeastSeconds = 0.1;
  CLI::Option* const every = command.add_option_function<std::string>(
      "--interval",
      [&options](const std::string& text) {
        options.interval_s = std::chrono::duration<double>(parse_duration(text, "--interval")).count();
        if (options.interval_s < kLeastSeconds) {
          throw usage_error("--interval " + text + ": an interval is 100 ms or more");
        }
      },
      "a line on standard error for each interval of the run, like 1s");
  every->type_name("TIME")->group(kGroup);
  command.add_option("--interval-file", options.output.interval_file,
                     "the same as JSON records, a line each, in a file (-: standard output)")
      ->type_name("FILE")->group(kGroup)->needs(every);
  command.add_option("--listen-metrics", options.listen_metrics,
                     "serve the results of each interval (default: 1s) to Prometheus over HTTP, on the loopback "
                     "interface unless an address is given")
      ->type_name("[ADDR:]PORT")->group(kGroup);
  command.add_option("--samples", options.output.samples,
                     options.test.metric == Metric::kLatency
                         ? "latencies as an HdrHistogram log in a file (-: standard output)"
                         : "the batches of each run as CSV in a file (-: standard output)")
      ->type_name("FILE")->group(kGroup);
}

}  // namespace gdrperf::app
