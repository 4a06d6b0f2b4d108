#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "gdrperf/compare/judge.h"

namespace gdrperf::app {

struct CompareOptions {
  std::string baseline;             ///< a folder or a document
  std::vector<std::string> recent;  ///< documents or folders: what is compared with it
  compare::Settings settings;
  std::string json;      ///< file, "-" for standard output, "" for none
  std::string markdown;  ///< the same
  std::string rerun;     ///< a shell command with {} where the file's name goes; "" for none
  int reruns = 3;
  std::string by;        ///< "relation": side by side instead of the gate
  bool all = false;      ///< show cells that are ok, too
};

/// Compares and reports; the exit code is 0 (no regression), 1 (regression) or
/// 4 (inconclusive). Throws Error(kUsage) for what cannot be read.
int run_compare(const CompareOptions& options, std::ostream& out, std::ostream& err);

}  // namespace gdrperf::app
