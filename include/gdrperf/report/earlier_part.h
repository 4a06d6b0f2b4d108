#pragma once

#include <set>
#include <string>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// A run of a document, kept as the text it has there.
struct EarlierRun {
  RunRecord facts;   ///< ends, relation, size, path and median: what verdicts are made of
  std::string text;  ///< JSON
};

/// Content of the document of a sweep that was stopped, or of which runs failed.
struct EarlierPart {
  std::vector<std::string> argv;
  std::string started;             ///< RFC 3339
  std::string host;                ///< where it ran
  std::string version;             ///< of gdrperf, with the revision
  std::set<std::string> missing;   ///< names of the planned runs that it does not have
  std::vector<EarlierRun> runs;
};

/// Reads a result document whose sweep is to go on. Throws usage_error naming the file when it cannot be read, is
/// none, or misses no run.
EarlierPart read_earlier_part(const std::string& path);

}  // namespace gdrperf::report
