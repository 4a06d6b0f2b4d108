#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

struct BaselineOptions {
  enum class Task { kAdd, kNoise, kTrend };
  Task task = Task::kAdd;
  std::vector<std::string> results;  ///< documents or folders
  std::string store = "results/baselines";
  double threshold = 0.02;           ///< trend: smaller changes are left out
};

/// Stores documents, measures and records their A/A noise, or prints where their
/// history changed. Throws Error.
int run_baseline(const BaselineOptions& options, std::ostream& out);

}  // namespace gdrperf::app
