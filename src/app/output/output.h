#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "app/client/client.h"
#include "gdrperf/base/error.h"
#include "gdrperf/report/console.h"
#include "gdrperf/report/document.h"
#include "gdrperf/export/formats.h"
#include "gdrperf/export/perftest.h"
#include "gdrperf/report/pair_matrix.h"
#include "gdrperf/report/record.h"
#include "gdrperf/report/relations.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {

class Placement;
class RequiredRuns;
struct Sinks;

/// Whether the table for people is written; not where another program writes its own.
enum class TableFor { kPeople, kNobody };
/// Of many pairs nobody reads as many tables.
enum class Summary { kTables, kMatrix };

struct OutputOptions {
  std::string json;        ///< file, "-" for standard output, "" for none
  std::string csv;         ///< the same
  std::string perftest_json;  ///< the last run as perftest's --out_json has it; a file, "" for none
  std::string nvidia_smi;  ///< a capture of `nvidia-smi topo -m` to take the topology from
  std::optional<report::Format> format;  ///< all runs in it at the end
  std::string format_file;  ///< where to; "" or "-" for standard output
  std::string interval_file;  ///< records that others write; "-" for standard output, "" for none
  std::string samples;        ///< the same of what runs were made of
  report::Required required;
  topo::TopologyFiles machine;  ///< a recorded machine in place of this one; none: this one
  report::RateUnit rate_unit = report::RateUnit::kGigabytes;
  TableFor table = TableFor::kPeople;
  bool progress_lines = false;  ///< what runs are doing, as lines
  Talk talk = Talk::kUsual;
  ColourChoice colour = ColourChoice::kAuto;
  report::PortColumns each_port = report::PortColumns::kSum;  ///< of perftest's columns
};

/// Output of a command: the table people read, on standard output or, when
/// that carries JSON, CSV or another format, on standard error; the files, whole again after
/// each run. Used by one thread.
class Output {
 public:
  /// Reads the topology. Throws Error(kUsage) when the options cannot be,
  /// Error(kEnvironment) when a file could not be written later.
  Output(OutputOptions options, std::vector<std::string> argv);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const topo::Topology& topology() const;

  /// kMatrix: GPUs against NICs at the end, in place of the tables unless --verbose; before the first add().
  void set_summary(Summary summary) { summary_ = summary; }

  void set_server(const report::Environment& environment) {
    document_.set_server(environment);
    server_host_ = environment.hostname;
  }
  /// Goes on with the document of an earlier part, before the first add().
  void go_on_from(const report::EarlierPart& part) { document_.go_on_from(part); }
  /// Planned runs that the document does not have (yet).
  void set_missing(const std::vector<std::string>& names) { document_.set_missing(names); }
  /// Adds one run everywhere, with its relation and ceiling. Throws Error(kEnvironment) naming the file that
  /// cannot be written and why.
  void add(report::RunRecord record);
  /// First step of add(); of a record not measured yet, as far as that is known then.
  void annotate(report::RunRecord& record) const;
  /// Into the document, not to the terminal.
  void add_warning(const std::string& warning) { document_.add_warning(warning); }
  std::size_t runs() const { return document_.runs(); }
  /// Where the table for people goes.
  std::ostream& table_stream();
  /// After the last run; writes the document also when there was none, and names runs
  /// that miss what is required.
  void finish();
  /// kRegression where a run misses what is required, kInconclusive where nobody can say.
  ExitCode required_met() const;

 private:
  void print_summary(std::ostream& out);
  bool streams_columns() const;

  OutputOptions options_;
  std::unique_ptr<Sinks> sinks_;
  report::ConsoleOptions console_;
  Summary summary_ = Summary::kTables;
  report::PairMatrix matrix_;
  report::ConsoleTable table_;
  report::Document document_;
  std::string csv_;
  std::string started_;
  report::Environment client_;
  std::string server_host_;
  std::vector<report::RunRecord> kept_;  ///< for options_.format
  report::PerftestColumns columns_;  ///< where they are the format: a row after each run
  std::unique_ptr<Placement> placement_;
  report::RelationComparison comparison_;
  std::unique_ptr<RequiredRuns> required_;
};

/// Throws usage_error where --output names a figure of perftest that this test does not have.
void check_figure(Test test, const OutputOptions& options);

/// The topology that an Output would have.
topo::Topology topology_here(const OutputOptions& options);

/// Puts `content` at `path`: by a file beside it and rename, or, where `path` is
/// no regular file (a pipe, a device, "-"), by writing to it. Throws
/// Error(kEnvironment).
void write_output(const std::string& path, const std::string& content);

}  // namespace gdrperf::app
