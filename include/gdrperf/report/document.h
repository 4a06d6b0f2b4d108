#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gdrperf/report/earlier_part.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/report/paired_verdict.h"
#include "gdrperf/report/path_verdict.h"
#include "gdrperf/report/record.h"
#include "gdrperf/report/topology.h"

namespace gdrperf::report {

/// Value of a document's `schema` member; changes when old readers would break.
inline constexpr char kSchemaName[] = "gdrperf-results/1";

/// Build and command line that were run.
struct Tool {
  std::string version;
  std::string git;
  std::vector<std::string> argv;
};
/// A file of another program that is in a document.
struct ImportedFile {
  Outside file;
  std::string format;  ///< ImportFormat::name
  std::size_t runs = 0;
};
/// This build.
Tool this_tool(std::vector<std::string> argv);

/// RFC 3339 in UTC, whole seconds: "2025-01-31T12:00:00Z".
std::string rfc3339_utc(std::chrono::system_clock::time_point time);

/// A result document in the making (results/schema.json describes it). Runs
/// are turned into text as they are added, so writing it again after each of
/// many runs costs little more than the bytes. Not thread-safe.
///
/// Rates are Gb/s (1e9 bits of payload per second) under keys that end in
/// `_gbps`; what is not known, NaN and infinities are null; numbers have 7
/// significant digits; invalid UTF-8 becomes U+FFFD.
class Document {
 public:
  /// Runs stand at this column: document, relations, relation, test, run.
  static constexpr int kRunIndent = 8;

  Document(Tool tool, std::string started) : tool_(std::move(tool)), started_(std::move(started)) {}

  void set_client(Environment environment) { client_ = std::move(environment); }
  void set_server(Environment environment) { server_ = std::move(environment); }
  void set_topology(Topology topology) { topology_ = std::move(topology); }
  /// Under `relations`, its relation, its test; in the order added. Throws
  /// usage_error when the relation is none of the six.
  void add(const RunRecord& record);
  /// Goes on with what an earlier part has: its runs come first, and it was started then.
  void go_on_from(const EarlierPart& part);
  /// Names of planned runs that are not in it (yet); none: it is whole.
  void set_missing(std::vector<std::string> names) { missing_ = std::move(names); }
  void add_warning(std::string warning) { warnings_.push_back(std::move(warning)); }
  /// Marks the document as of a simulated machine. One simulated run does, too.
  void set_simulated() { simulated_ = true; }
  /// Says that its runs came from that file.
  void add_imported(ImportedFile file) { imported_.push_back(std::move(file)); }
  std::size_t runs() const { return runs_; }
  /// Direct or staged, where both were run.
  std::vector<PathVerdict> path_verdicts() const { return paths_.all(); }
  /// Of each pairing, where both ways were run.
  std::vector<PairedVerdict> paired_verdicts() const { return paired_.all(); }

  /// The document, with a newline at its end.
  std::string to_json() const;

  /// Replaces `path` by the document as write_file_atomic() does; "-" writes
  /// it to standard output (call it once, then). Throws Error(kEnvironment).
  void write(const std::string& path) const;

 private:
  void add(const RunRecord& record, std::string text);

  Tool tool_;
  std::string started_;
  std::optional<Environment> client_;
  std::optional<Environment> server_;
  Topology topology_;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> relations_;
  PathVerdicts paths_;
  PairedVerdicts paired_;
  std::vector<std::string> warnings_;
  std::vector<std::string> missing_;
  std::vector<ImportedFile> imported_;
  std::size_t runs_ = 0;
  bool simulated_ = false;
};

}  // namespace gdrperf::report
