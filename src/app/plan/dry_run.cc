#include "app/plan/dry_run.h"

#include <algorithm>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "gdrperf/base/units.h"
#include "gdrperf/engine/memory_demand.h"
#include "gdrperf/report/progress.h"
#include "app/output/table.h"

namespace gdrperf::app {
namespace {

/// Sum of all runs.
struct Sum {
  std::size_t runs = 0;
  std::uint64_t least_bytes = ~std::uint64_t{0};
  std::uint64_t most_bytes = 0;
  std::set<std::string> ends;
  engine::MemoryDemand here;
  engine::MemoryDemand there;
  double seconds = 0;
  bool counted = false;  ///< -n: nobody knows how long N messages take
  bool endless = false;

  void add(const PlannedRun& run) {
    ++runs;
    least_bytes = std::min(least_bytes, run.spec.size_bytes);
    most_bytes = std::max(most_bytes, run.spec.size_bytes);
    ends.insert(run.pair ? run.pair->key().raw() : run.spec.client.device + " " + run.spec.client.buffer);
    grow(here, engine::memory_of(run.spec, conn::Side::kClient));
    grow(there, engine::memory_of(run.spec, conn::Side::kServer));
    const StopRule& stop = run.spec.stop;
    counted |= stop.iterations.has_value();
    endless |= stop.forever;
    seconds += std::chrono::duration<double>(stop.duration.value_or(stop.cap)).count();
  }

 private:
  static void grow(engine::MemoryDemand& most, const engine::MemoryDemand& one) {
    most.host = std::max(most.host, one.host);
    most.gpu = std::max(most.gpu, one.gpu);
  }
};

std::string memory_text(const engine::MemoryDemand& demand) {
  const std::string host = about_size(demand.host);
  return demand.gpu == 0 ? host : fmt::format("{} + {} GPU", host, about_size(demand.gpu));
}

std::vector<std::string> row(const std::string& name, const Sum& sum) {
  const std::string sizes = sum.least_bytes == sum.most_bytes
                                ? format_size(sum.most_bytes)
                                : fmt::format("{} to {}", format_size(sum.least_bytes), format_size(sum.most_bytes));
  return {name, std::to_string(sum.runs), std::to_string(sum.ends.size()), sizes, memory_text(sum.here),
          memory_text(sum.there), sum.endless ? "no end" : sum.counted ? "by count" : report::short_time(sum.seconds)};
}

}  // namespace

void add_dry_run(CLI::App& command, bool& dry_run) {
  command.add_flag("--dry-run", dry_run, "print the plan, the time and the memory needed, and exit")
      ->group("What to run");
}

void print_plan(std::ostream& out, const std::vector<PlannedRun>& runs) {
  Table table({"test", "runs", "ends", "sizes", "memory here", "there", "at most"});
  std::vector<std::pair<std::string, Sum>> tests;
  Sum all;
  for (const PlannedRun& run : runs) {
    const std::string name = to_string(run.spec.test);
    auto found = std::find_if(tests.begin(), tests.end(), [&](const auto& one) { return one.first == name; });
    if (found == tests.end()) found = tests.insert(tests.end(), {name, {}});
    found->second.add(run);
    all.add(run);
  }
  for (const auto& [name, sum] : tests) table.add(row(name, sum));
  if (tests.size() > 1) table.add(row("in all", all));
  table.add_line(
      "memory: of the largest run; time: measuring, without set-up (a run ends as soon as its result is precise "
      "enough)");
  table.print(out);
}

}  // namespace gdrperf::app
