#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gdrperf/base/error.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/record.h"

namespace gdrperf::app {

/// --min-gbps, --max-p99-us and --min-efficiency. `required` must outlive the parsing.
void add_required_options(CLI::App& command, report::Required& required);

/// Throws usage_error for what none of `tests` measures.
void check_required(const report::Required& required, std::span<const Test> tests);

/// Gathers the runs that miss what was asked of them.
class RequiredRuns {
 public:
  void add(const report::RunRecord& record);
  /// Names them, each with its figure; nothing where all are met.
  void print(std::ostream& out, const report::ConsoleOptions& options) const;
  /// kRegression where one misses, else kInconclusive where one could not be judged.
  ExitCode exit_code() const;

 private:
  std::size_t asked_ = 0;  ///< runs something was asked of
  std::vector<std::string> missed_;
  std::vector<std::string> unknown_;
};

}  // namespace gdrperf::app
