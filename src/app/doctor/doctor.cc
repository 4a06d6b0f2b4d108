#include "app/doctor/doctor.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/command.h"
#include "app/doctor/host.h"
#include "app/doctor/probe.h"
#include "app/doctor/text.h"
#include "app/options/options.h"
#include "app/client/softnic_exec.h"
#include "app/options/suggest.h"
#include "app/output/sink.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/doctor/doctor.h"
#include "gdrperf/doctor/words.h"
#include "gdrperf/proto/tcp_port.h"

namespace gdrperf::app {
namespace {

using doctor::Examination;
using doctor::Finding;
using doctor::Verdict;

constexpr std::size_t kMostCapture = 16u << 20;
constexpr const char* kOwnProgram = "/proc/self/exe";

void check_only(const std::vector<std::string>& only) {
  std::vector<std::string> known;
  for (const doctor::CheckInfo& check : doctor::checks()) known.push_back(check.id);
  for (const std::string& id : only) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    const auto near = suggestions(id, known);
    throw usage_error(fmt::format("--only: there is no check '{}'", id),
                      near.empty() ? "'gdrperf doctor --list' shows all"
                                   : fmt::format("did you mean {}?", fmt::join(near, " or ")));
  }
}

void check_together(const DoctorOptions& options) {
  if (!options.host.empty() && !(options.captures.empty() && options.root.empty() && options.record.empty())) {
    throw usage_error("HOST compares this machine with a running server: not with --read, --root or --record",
                      "gdrperf doctor HOST");
  }
  const int sources = (options.captures.empty() ? 0 : 1) + (options.root.empty() ? 0 : 1) +
                      (options.record.empty() ? 0 : 1);
  if (sources > 1) {
    throw usage_error("--read, --root and --record: one at a time",
                      "--read judges pasted text, --root a recording, --record writes one of this machine");
  }
  if (options.unmasked && options.record.empty()) {
    throw usage_error("--unmasked is about what --record writes", "give --record FILE.tar.gz, too");
  }
}

Examination examine(const DoctorOptions& options, const doctor::Words& words) {
  if (!options.captures.empty()) {
    std::vector<doctor::Capture> captures;
    for (const std::string& path : options.captures) {
      captures.push_back({path, of_option("--read", [&] { return read_file(path, kMostCapture); })});
    }
    return {doctor::read_captures(captures, words), {}, false};
  }
  Examination both;
  if (!options.host.empty()) both = examine_both_ends(options);
  const auto machine = options.root.empty()
                           ? doctor::this_machine(kOwnProgram)
                           : of_option("--root", [&] { return doctor::recorded_machine(options.root); });
  Examination examination = doctor::examine(*machine, {softnic_library(), options.only, &words});
  for (Finding& finding : both.findings) examination.findings.push_back(std::move(finding));
  return examination;
}

int record(const DoctorOptions& options, std::ostream& out) {
  of_option("--record", [&] {
    doctor::record(*doctor::this_machine(kOwnProgram), options.record,
                   options.unmasked ? doctor::Masking::kOff : doctor::Masking::kOn);
  });
  out << fmt::format("recorded in {}{}; look at it: gdrperf doctor --root {}\n", options.record,
                     options.unmasked ? "" : ", with MACs, serial numbers and addresses masked", options.record);
  return 0;
}

bool could_not_look(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.check == "capture" ||
           (finding.check == "recording" && finding.found.find("holds no") != std::string::npos);
  });
}

template <typename Print>
void write_json(const Sink& json, Print print, std::ostream& out) {
  if (json.is_stdout()) return print(out);
  std::ostringstream text;
  print(text);
  json.write(text.str());
}

ExitCode exit_code(const Examination& examination) {
  const std::vector<Finding>& findings = examination.findings;
  // Without hardware that alone is said; what else failed is a failure.
  const bool other = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::kFail && finding.check != "rdma-device";
  });
  if (examination.nothing_here && !other) return ExitCode::kEnvironment;
  if (count_of(findings, Verdict::kFail) > 0) return ExitCode::kRegression;
  return could_not_look(findings) ? ExitCode::kEnvironment : ExitCode::kOk;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Diagnose why RDMA or GPUDirect RDMA does not work or is slow");
  command
      ->add_option("--read", options->captures,
                   "Judge captured text (- for standard input) instead of this machine: lspci -vvv, lsmod, "
                   "dmesg, ethtool, show_gids, ibdev2netdev, ibv_devinfo, ibstat, nvidia-smi, mlxconfig, "
                   "messages of NCCL, UCX and perftest; several files are compared, too")
      ->type_name("FILE");
  command->add_option("--root", options->root, "Judge a recorded machine: a folder, a tar file or a text recording")
      ->type_name("DIR|FILE");
  command
      ->add_option("--record", options->record,
                   "Write the inputs of the checks to a gzipped tar file, for --root; MACs, serial numbers and "
                   "addresses are masked")
      ->type_name("FILE.tar.gz");
  options->port = kDefaultPort;
  command
      ->add_option(
          "host", options->host,
          "Compare client and server, with a short transfer each way: HOST or HOST:PORT, where 'gdrperf serve' runs")
      ->type_name("HOST");
  command
      ->add_option_function<std::string>(
          std::string(flags::kPort) + ",--port",
          [options](const std::string& text) {
            options->port = static_cast<int>(parse_integer(text, flags::kPort, 1, proto::kMaxTcpPort));
          },
          fmt::format("With HOST: TCP port of the server (default: {})", kDefaultPort))
      ->type_name("PORT");
  command->add_option(flags::kToken, options->token, "With HOST: file with the server's secret")->type_name("FILE");
  command->add_option("-d,--dev", options->device, "With HOST: RDMA device of the client")->type_name("DEV");
  command->add_option("--peer-dev", options->peer_device, "With HOST: RDMA device of the server")->type_name("DEV");
  command->add_flag("--unmasked", options->unmasked, "With --record: leave MACs, serial numbers and addresses in");
  command->add_option("--only", options->only, "Run these checks only")->type_name("ID")->delimiter(',');
  command->add_flag("--list", options->list, "List all checks, what each looks at and when it complains");
  command->add_option("--words", options->words, "Also know the messages in FILE, which come before the program's own")
      ->type_name("FILE");
  command->add_flag("--list-words", options->list_words,
                    "List the sources of known messages, and how many are known of each");
  command->add_flag("-v,--verbose", options->verbose, "Print every finding and pair, with evidence and undo");
  command->add_flag("--fix-script", options->fix_script,
                    "Print a commented shell script of the fixes, which asks before each; run nothing");
  add_json_option(*command, options->json, "Write JSON to FILE, or to standard output (no FILE, or -)");
  command->add_flag("--probe-gpus", options->probe_gpus)->group("");
  command->footer(
      "Changes nothing. Exit code 0 when no check failed, 1 when one did, 3 when there was nothing to check.");
  command->final_callback([options, &action] {
    action = [options](const Argv&) { return run_doctor(*options, std::cout); };
  });
}

int run_doctor(const DoctorOptions& options, std::ostream& out) {
  if (options.probe_gpus) return run_gpu_probe(out);
  const Sink json(options.json);
  json.check("--json");
  if (options.list) {
    if (json.given()) write_json(json, [](std::ostream& to) { print_check_list_json(to); }, out);
    if (!json.is_stdout()) print_check_list(out);
    return 0;
  }
  const doctor::Words words = options.words.empty() ? doctor::known_words() : doctor::words_with(options.words);
  if (options.list_words) {
    if (json.given()) write_json(json, [&](std::ostream& to) { print_word_list_json(words, to); }, out);
    if (!json.is_stdout()) print_word_list(words, out);
    return 0;
  }
  check_together(options);
  check_only(options.only);
  if (!options.record.empty()) return record(options, out);
  const Examination examination = examine(options, words);
  const ExitCode code = exit_code(examination);
  if (json.given()) write_json(json, [&](std::ostream& to) { print_examination_json(examination, to); }, out);
  // Of pasted text all is shown: what is harmless, and what was not understood, too.
  const Detail detail = options.verbose || !options.captures.empty() ? Detail::kAll : Detail::kBrief;
  if (options.fix_script) {
    out << doctor::fix_script(examination.findings);
  } else if (json.is_stdout()) {
    // Nothing else goes there.
  } else if (examination.nothing_here && code == ExitCode::kEnvironment && !examination.sys_hidden &&
             detail == Detail::kBrief && options.root.empty() && options.only.empty()) {
    print_nothing_here(out);
  } else {
    print_examination(examination, detail, out);
  }
  return static_cast<int>(code);
}

}  // namespace gdrperf::app
