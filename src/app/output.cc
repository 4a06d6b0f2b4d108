#include "gdrperf/app/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/unique_fd.h"
#include "gdrperf/report/csv.h"
#include "gdrperf/topo/topology.h"
#include "placement.h"
#include "process_setup.h"

namespace gdrperf::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStdout = "-";

Error write_failure(const std::string& path, int error) {
  const std::string limit = limit_hint(error);
  return Error(ExitCode::kEnvironment,
               fmt::format("cannot write {}: {}", path == kStdout ? "standard output" : path,
                           std::generic_category().message(error)),
               limit.empty() ? "free space or choose another path" : limit);
}

// Pipes and devices take each byte once and must not be replaced by a file.
bool is_stream(const std::string& path) {
  if (path == kStdout) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// Better now than after an hour of measuring.
void check_writable(const std::string& path, const char* flag) {
  if (path.empty() || is_stream(path)) return;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw usage_error(fmt::format("{} {}: is a directory; give the name of a file", flag, path));
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{} {}: cannot write in {}: {}", flag, path, folder,
                            std::generic_category().message(errno)),
                "make the folder or choose another path");
  }
}

OutputOptions checked(OutputOptions options) {
  if (options.json == kStdout && options.csv == kStdout) {
    throw usage_error("--json - and --csv -: standard output can carry one of them");
  }
  if (options.format && (options.json == kStdout || options.csv == kStdout)) {
    throw usage_error(fmt::format("--format {} and {} -: standard output can carry one of them",
                                  report::to_string(*options.format), options.json == kStdout ? "--json" : "--csv"),
                      "give a file to --json or --csv");
  }
  check_writable(options.json, "--json");
  check_writable(options.csv, "--csv");
  return options;
}

int table_fd(const OutputOptions& options) {
  const bool taken = options.json == kStdout || options.csv == kStdout || options.format;
  return taken ? STDERR_FILENO : STDOUT_FILENO;
}

std::ostream& table_stream(const OutputOptions& options) {
  static std::ostream nobody(nullptr);
  if (options.table == TableFor::kNobody) return nobody;
  return table_fd(options) == STDOUT_FILENO ? std::cout : std::cerr;
}

std::unique_ptr<Placement> place(const OutputOptions& options) {
  if (options.machine.any()) {
    return std::make_unique<Placement>(topo::load_topology(options.machine),
                                       Placement::Machine::kRecorded);
  }
  topo::TopologyFiles files;
  files.nvidia_smi = options.nvidia_smi;
  return std::make_unique<Placement>(topo::load_topology(files), Placement::Machine::kThis);
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      if (error == EPIPE && fd == STDOUT_FILENO) end_if_reader_gone();
      throw write_failure(path, error);
    }
    content.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

void write_output(const std::string& path, const std::string& content) {
  if (path == kStdout) {
    std::cout.flush();
    write_all(STDOUT_FILENO, content, path);
  } else if (is_stream(path)) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) throw write_failure(path, errno);
    write_all(fd.get(), content, path);
  } else {
    // What a symbolic link points to is replaced, not the link.
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    write_file_atomic(error ? path : target.string(), content);
  }
}

Output::Output(OutputOptions options, std::vector<std::string> argv)
    : options_(checked(std::move(options))),
      table_(table_stream(options_), {options_.rate_unit, report::colour_for(table_fd(options_))}),
      document_(report::this_tool(std::move(argv)), report::rfc3339_utc(std::chrono::system_clock::now())),
      csv_(report::csv_header()),
      started_(report::rfc3339_utc(std::chrono::system_clock::now())),
      placement_(place(options_)) {
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
  document_.add(record);
  table_.add(record);
  comparison_.add(record);
  table_stream(options_).flush();
  csv_ += report::csv_line(record);
  if (options_.format) kept_.push_back(record);
  if (!options_.json.empty() && !is_stream(options_.json)) {
    write_output(options_.json, document_.to_json());
  }
  if (!options_.csv.empty() && !is_stream(options_.csv)) write_output(options_.csv, csv_);
  // No more runs for a table that nobody reads.
  if (!table_stream(options_)) end_if_reader_gone();
}

void Output::finish() {
  table_.finish();
  comparison_.print(table_stream(options_), options_.rate_unit);
  table_stream(options_) << report::to_text(document_.path_verdicts());
  if (!options_.json.empty()) write_output(options_.json, document_.to_json());
  if (!options_.csv.empty()) write_output(options_.csv, csv_);
  if (options_.format) {
    write_output(kStdout, report::render(*options_.format, kept_,
                                         {started_, client_.hostname, "gdrperf", client_.tool_version, client_.cpus_online}));
  }
}

}  // namespace gdrperf::app
