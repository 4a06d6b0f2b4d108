#include "unstable.h"

#include <fmt/format.h>

#include "gdrperf/stats/pattern.h"

namespace gdrperf::engine {
namespace {

const char* words_for(stats::Pattern pattern) {
  switch (pattern) {
    case stats::Pattern::kSteps:
      return "it changes in steps, as when another job comes or a thread moves to another CPU; pin both ends "
             "(--cpu, --peer-cpu)";
    case stats::Pattern::kDrift:
      return "it drifts, as clock frequency and temperature do; fix the frequency governor, or run longer (--cap)";
    case stats::Pattern::kBimodal:
      return "two levels take turns, as with two paths, CPUs or memory nodes; pin both ends (--cpu, --peer-cpu)";
    case stats::Pattern::kPeriodic:
      return "it goes up and down regularly, as with a timer or a job that wakes up; find and stop it";
    case stats::Pattern::kScatter: break;
  }
  return "no order in it, as with other work on the machine or the network; run longer (--cap) or accept less "
         "(--precision)";
}

}  // namespace

void mark_unstable(report::Measurement& measured, std::span<const double> batches, const char* what,
                   double precision, double cap_s) {
  const stats::PatternFound found = stats::find_pattern(batches);
  measured.unstable = true;
  measured.unstable_reason = stats::to_string(found.pattern);
  measured.warnings.push_back(
      fmt::format("{}not within +-{:g} % after {:g} s: {}", what, precision * 100, cap_s, words_for(found.pattern)));
}

}  // namespace gdrperf::engine
