#include "cmd_doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "gdrperf/app/softnic_exec.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/doctor/doctor.h"
#include "table.h"

namespace gdrperf::app {
namespace {

using Json = nlohmann::ordered_json;
using doctor::Finding;
using doctor::Verdict;

constexpr std::size_t kMostCapture = 16u << 20;

std::vector<Finding> findings_for(const DoctorOptions& options) {
  if (options.captures.empty()) {
    return doctor::examine(*doctor::this_machine(), {softnic_library()});
  }
  std::vector<Finding> findings;
  for (const std::string& path : options.captures) {
    for (Finding& finding : doctor::read_capture(read_file(path, kMostCapture))) {
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

std::ptrdiff_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.verdict == verdict; });
}

void print_json(const std::vector<Finding>& findings, std::ostream& out) {
  Json counts = Json::object();
  for (const Verdict verdict : {Verdict::kOk, Verdict::kWarn, Verdict::kFail, Verdict::kSkip}) {
    counts[doctor::to_string(verdict)] = count_of(findings, verdict);
  }
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"subject", finding.subject},
                      {"verdict", doctor::to_string(finding.verdict)},
                      {"found", finding.found},
                      {"why", finding.why},
                      {"fix", finding.fix}});
  }
  // Names come from drivers: whatever bytes they hold, the output is JSON.
  out << Json{{"counts", std::move(counts)}, {"checks", std::move(checks)}}.dump(
             2, ' ', false, Json::error_handler_t::replace)
      << '\n';
}

std::string counted(const std::vector<Finding>& findings, Verdict verdict, const char* what) {
  return fmt::format("{} {}", count_of(findings, verdict), what);
}

void print_table(const std::vector<Finding>& findings, std::ostream& out) {
  Table table({"VERDICT", "CHECK", "WHERE", "FOUND"});
  for (const Finding& finding : findings) {
    table.add({doctor::to_string(finding.verdict), finding.check,
               finding.subject.empty() ? "-" : finding.subject, finding.found});
    if (finding.verdict == Verdict::kWarn || finding.verdict == Verdict::kFail) {
      table.add_line("         why: " + finding.why);
    }
    if (!finding.fix.empty()) table.add_line("         fix: " + finding.fix);
  }
  table.print(out);
  const char* warnings = count_of(findings, Verdict::kWarn) == 1 ? "warning" : "warnings";
  out << fmt::format("\n{}, {}, {}, {}\n", counted(findings, Verdict::kOk, "ok"),
                     counted(findings, Verdict::kWarn, warnings),
                     counted(findings, Verdict::kFail, "failed"),
                     counted(findings, Verdict::kSkip, "skipped"));
}

}  // namespace

CLI::App* add_doctor_command(CLI::App& app, DoctorOptions& options) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Find out why RDMA or GPUDirect RDMA does not work, or is slow, here");
  command
      ->add_option(
          "--read", options.captures,
          "Judge captured text (- for standard input) instead of this machine: lspci -vvv, "
          "lsmod, dmesg, ethtool -i, show_gids, ibdev2netdev, ibv_devinfo")
      ->type_name("FILE");
  command->add_flag("--json", options.json, "Print JSON");
  command->footer("Changes nothing. Exit code 0 when no check failed, 1 when one did.");
  return command;
}

int run_doctor(const DoctorOptions& options, std::ostream& out) {
  const std::vector<Finding> findings = findings_for(options);
  if (options.json) {
    print_json(findings, out);
  } else {
    print_table(findings, out);
  }
  return static_cast<int>(count_of(findings, Verdict::kFail) > 0 ? ExitCode::kRegression
                                                                 : ExitCode::kOk);
}

}  // namespace gdrperf::app
