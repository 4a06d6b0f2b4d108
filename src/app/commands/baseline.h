#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

struct BaselineOptions {
  enum class Task { kAdd, kNoise, kTrend, kList, kShow, kRemove };
  Task task = Task::kAdd;
  std::vector<std::string> results;  ///< documents or folders; show, rm: machines or documents of the store
  std::string store = "results/baselines";
  double threshold = 0.02;           ///< trend: smaller changes are left out
};

/// Stores documents, measures and records their A/A noise, prints where their history changed, or what the
/// store has, or removes of it. Throws Error.
int run_baseline(const BaselineOptions& options, std::ostream& out);

}  // namespace gdrperf::app
