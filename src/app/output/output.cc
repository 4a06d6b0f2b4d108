#include "app/output/output.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/export/csv.h"
#include "gdrperf/topo/topology.h"
#include "app/topo/placement.h"
#include "app/process_setup.h"
#include "app/options/requirements.h"
#include "app/output/sink.h"

namespace gdrperf::app {

/// Destination of each output.
struct Sinks {
  Sink json;
  Sink csv;
  Sink format;
  Sink intervals;
  Sink samples;
  Sink perftest_json;
  bool on_stdout() const {
    return json.is_stdout() || csv.is_stdout() || format.is_stdout() || intervals.is_stdout() || samples.is_stdout();
  }
};

namespace {

/// `flag` as it was typed, with what came behind it.
void check_apart(const Sink& one, const std::string& flag, const Sink& other, const std::string& other_flag) {
  if (!one.same_as(other)) return;
  if (one.is_stdout()) {
    throw usage_error(fmt::format("{} and {}: standard output can carry one of them", flag, other_flag),
                      "give a file to one of them");
  }
  throw usage_error(fmt::format("{} and {}: the same file", flag, other_flag), "give each a file of its own");
}

Sinks checked(const OutputOptions& options) {
  if (!options.format && !options.format_file.empty()) {
    throw usage_error(fmt::format("-o {}: there is no --format that would go there", options.format_file),
                      "--json FILE and --csv FILE name their own (perftest's -o is its number of outstanding reads)");
  }
  Sinks sinks;
  sinks.json = Sink(options.json);
  sinks.csv = Sink(options.csv);
  std::string format = "--format";
  if (options.format) {
    sinks.format = Sink(options.format_file.empty() ? "-" : options.format_file);
    format += fmt::format(" {}", options.format->name);
    if (!options.format_file.empty()) format += " -o " + options.format_file;
  }
  sinks.intervals = Sink(options.interval_file);
  sinks.samples = Sink(options.samples);
  sinks.perftest_json = Sink(options.perftest_json);
  // Flag for a file of its own, and as it was typed.
  struct Typed {
    const Sink& sink;
    const char* flag;
    std::string whole;
  };
  const Typed all[] = {{sinks.json, "--json", "--json " + options.json},
                       {sinks.csv, "--csv", "--csv " + options.csv},
                       {sinks.format, "-o", format},
                       {sinks.intervals, "--interval-file", "--interval-file " + options.interval_file},
                       {sinks.samples, "--samples", "--samples " + options.samples},
                       {sinks.perftest_json, "--out_json_file", "--out_json_file " + options.perftest_json}};
  for (const Typed& one : all) {
    for (const Typed* other = &one + 1; other != std::end(all); ++other)
      check_apart(one.sink, one.whole, other->sink, other->whole);
  }
  for (const Typed& each : all) each.sink.check(each.flag);
  return sinks;
}

int table_fd(const Sinks& sinks) { return sinks.on_stdout() ? STDERR_FILENO : STDOUT_FILENO; }

std::ostream& stream_of_table(const OutputOptions& options, const Sinks& sinks) {
  static std::ostream nobody(nullptr);
  if (options.table == TableFor::kNobody || options.talk == Talk::kQuiet) return nobody;
  return table_fd(sinks) == STDOUT_FILENO ? std::cout : std::cerr;
}

report::ConsoleOptions console_options(const OutputOptions& options, int fd) {
  report::ConsoleOptions console;
  console.rate_unit = options.rate_unit;
  console.colour = colour_for(fd, options.colour);
  console.columns = terminal_columns(fd);
  console.charset = locale_takes_utf8() ? report::Charset::kUtf8 : report::Charset::kAscii;
  console.detail = options.talk == Talk::kVerbose ? report::Detail::kAll : report::Detail::kBrief;
  return console;
}

std::unique_ptr<Placement> place(const OutputOptions& options) {
  if (options.machine.any()) {
    return std::make_unique<Placement>(topo::load_topology(options.machine),
                                       Placement::Machine::kRecorded);
  }
  if (options.nvidia_smi.empty()) {
    return std::make_unique<Placement>(topo::topology_for_runs(), Placement::Machine::kThis);
  }
  topo::TopologyFiles files;
  files.set("nvidia-smi", options.nvidia_smi);
  try {
    return std::make_unique<Placement>(topo::load_topology(files), Placement::Machine::kThis);
  } catch (const Error& error) {
    throw error.in(flags::kNvidiaSmi);
  }
}

/// `--output WORD` of perftest: its own columns, for WORD perftest, or one figure.
OutputOptions with_columns_asked(OutputOptions options) {
  constexpr std::string_view kPerftest = "perftest";
  const std::string& word = options.format_file;
  const bool columns = !options.format || options.format->name == kPerftest;
  if (!columns) return options;
  const std::optional<report::Format> asked =
      word == kPerftest ? report::parse_format(word) : report::perftest_figure(word);
  if (!asked) return options;
  options.format = asked;
  options.format_file.clear();
  return options;
}

}  // namespace

void check_figure(Test test, const OutputOptions& options) {
  const std::string& word = options.format_file;
  const bool columns = !options.format || options.format->name == "perftest";
  if (!columns || !report::perftest_figure(word)) return;
  if ((word == "latency") == (test.metric == Metric::kLatency)) return;
  throw usage_error(
      fmt::format("--output {}: {} has no such result", word, to_string(test)),
      test.metric == Metric::kLatency ? "give --output latency" : "give --output bandwidth or message_rate");
}

topo::Topology topology_here(const OutputOptions& options) { return place(options)->topology(); }

void write_output(const std::string& path, const std::string& content) { Sink(path).write(content); }

Output::Output(OutputOptions options, std::vector<std::string> argv)
    : options_(with_columns_asked(std::move(options))),
      sinks_(std::make_unique<Sinks>(checked(options_))),
      console_(console_options(options_, table_fd(*sinks_))),
      table_(stream_of_table(options_, *sinks_), console_),
      document_(report::this_tool(std::move(argv)), report::rfc3339_utc(std::chrono::system_clock::now())),
      csv_(report::csv_header()),
      started_(report::rfc3339_utc(std::chrono::system_clock::now())),
      columns_(options_.rate_unit, options_.each_port),
      placement_(place(options_)),
      required_(std::make_unique<RequiredRuns>()) {
  client_ = report::collect_environment();
  document_.set_client(client_);
  document_.set_topology(placement_->describe());
  if (options_.machine.any()) document_.set_simulated();
  for (const std::string& warning : topology().warnings) document_.add_warning(warning);
}

Output::~Output() = default;

const topo::Topology& Output::topology() const { return placement_->topology(); }

void Output::annotate(report::RunRecord& record) const {
  placement_->annotate(record);
  record.client.host = client_.hostname;
  record.server.host = server_host_;
}

void Output::add(report::RunRecord record) {
  annotate(record);
  if (!record.required.any()) record.required = options_.required;
  document_.add(record);
  if (summary_ == Summary::kTables || options_.talk == Talk::kVerbose) table_.add(record);
  matrix_.add(record);
  comparison_.add(record);
  required_->add(record, placement_->reasons(record));
  stream_of_table(options_, *sinks_).flush();
  csv_ += report::csv_line(record);
  if (sinks_->perftest_json.given()) sinks_->perftest_json.write(report::perftest_json(record, options_.rate_unit));
  if (streams_columns()) sinks_->format.write(columns_.add(record));
  else if (options_.format) kept_.push_back(record);
  if (sinks_->json.given() && !sinks_->json.is_stream()) sinks_->json.write(document_.to_json());
  if (sinks_->csv.given() && !sinks_->csv.is_stream()) sinks_->csv.write(csv_);
  // No more runs for a table that nobody reads.
  if (!stream_of_table(options_, *sinks_)) end_if_reader_gone();
}

bool Output::streams_columns() const {
  return options_.format && options_.format->name == "perftest" && sinks_->format.is_stdout();
}

void Output::print_summary(std::ostream& out) {
  table_.finish();
  const bool matrix = summary_ == Summary::kMatrix;
  const bool brief = matrix && options_.talk != Talk::kVerbose;
  if (matrix) matrix_.print(out, console_);
  comparison_.print(out, console_, brief ? report::Sizes::kTelling : report::Sizes::kAll);
  out << wrapped(brief ? report::words_of(document_.path_verdicts()) : report::to_text(document_.path_verdicts()),
                 console_.columns, 4);
  out << wrapped(report::to_text(document_.paired_verdicts()), console_.columns, 4);
  // What was asked for is answered to the quiet, too.
  std::ostream& answers =
      options_.talk == Talk::kQuiet ? (table_fd(*sinks_) == STDOUT_FILENO ? std::cout : std::cerr) : out;
  required_->print(answers, console_);
  answers.flush();
  out.flush();
}

void Output::finish() {
  print_summary(stream_of_table(options_, *sinks_));
  if (sinks_->json.given()) sinks_->json.write(document_.to_json());
  if (sinks_->csv.given()) sinks_->csv.write(csv_);
  if (streams_columns()) {
    sinks_->format.write(columns_.end());
  } else if (options_.format) {
    sinks_->format.write(options_.format->render(
        kept_, {started_, client_.hostname, "gdrperf", client_.tool_version, client_.cpus_online, options_.rate_unit}));
  }
}

std::ostream& Output::table_stream() { return stream_of_table(options_, *sinks_); }

ExitCode Output::required_met() const { return required_->exit_code(); }

}  // namespace gdrperf::app
