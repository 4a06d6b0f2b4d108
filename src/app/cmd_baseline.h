#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gdrperf::app {

struct BaselineOptions {
  enum class Task { kAdd, kNoise };
  Task task = Task::kAdd;
  std::vector<std::string> results;  ///< documents or folders
  std::string store = "results/baselines";
};

/// Registers `gdrperf baseline add` and `gdrperf baseline noise`; parsing fills
/// `options`.
CLI::App* add_baseline_command(CLI::App& app, BaselineOptions& options);

/// Stores documents, or measures and records their A/A noise. Throws Error.
int run_baseline(const BaselineOptions& options, std::ostream& out);

}  // namespace gdrperf::app
