#pragma once

#include <cstddef>
#include <functional>
#include <map>
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
  /// `path_reasons`: what of the path is likely to slow it.
  void add(const report::RunRecord& record, std::vector<std::string> path_reasons = {});
  /// Names them, the worst first, each with its figure and what may be why; nothing where all are met.
  void print(std::ostream& out, const report::ConsoleOptions& options) const;
  /// kRegression where one misses, else kInconclusive where one could not be judged.
  ExitCode exit_code() const;

 private:
  struct Missed {
    std::string text;              ///< the run's name, and its figure
    std::string group;             ///< runs that should be as fast
    std::string nic = {};
    double share = 0;              ///< rate over what was asked
    double gbytes = 0;             ///< NaN: no rate
    std::vector<std::string> why;
  };
  std::vector<std::string> why_of(const Missed& missed) const;
  /// All runs of a NIC, if each of several missed while those of another NIC did not.
  bool whole_nic(const std::string& nic) const;
  void print_whole_nic(const std::string& nic, const std::function<void(const std::string&)>& line) const;

  std::size_t asked_ = 0;  ///< runs something was asked of
  std::vector<Missed> missed_;
  std::vector<std::string> unknown_;
  struct OfNic {
    std::size_t asked = 0;
    std::size_t missed = 0;
  };
  std::map<std::string, OfNic> nics_;
  std::map<std::string, std::vector<double>> rates_;  ///< GB/s of all runs, by group
};

}  // namespace gdrperf::app
