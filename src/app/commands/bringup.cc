// gdrperf bringup: the steps for a new machine, one after the other, and a page of what they found.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/topo/expected.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/host.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/run_program.h"
#include "gdrperf/base/text.h"
#include "gdrperf/base/units.h"
#include "gdrperf/mem/buffer.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/topo/topology.h"

namespace gdrperf::app {
namespace {

constexpr const char* kBringupFooter = R"(
Runs four steps, each a command of its own, and prints the verdict of each; for
a step that does not pass, also the lines that explain it. 'gdrperf serve' must
run on HOST.

Exit code: 0 ready, 1 a step failed, 4 undecided.

Example:
  gdrperf bringup node2)";

struct BringupOptions {
  std::string host;
  int port = kDefaultPort;
  std::string token;
  std::string expect;
  bool softnic = false;
};

struct Step {
  const char* what;
  std::vector<std::string> words;  ///< behind "gdrperf"
};

enum class StepVerdict { kPass, kUnsure, kFail };

/// What becomes of a step.
struct StepOutcome {
  StepVerdict verdict = StepVerdict::kPass;
  double seconds = 0;
  std::vector<std::string> lines;
};

constexpr std::chrono::minutes kLongestStep(10);
constexpr std::size_t kMostStepLines = 8;

bool pairs_of_gpus() {
  for (const std::string& kind : mem::buffers_at_hand()) {
    if (kind.starts_with("cuda:")) return !topo::pairs_of(topo::topology_for_runs()).empty();
  }
  return false;
}

std::vector<Step> steps_of(const BringupOptions& options) {
  const auto with = [&](std::vector<std::string> words, bool remote) {
    if (remote) words.insert(words.end(), {flags::kPort, std::to_string(options.port)});
    if (remote && !options.token.empty()) words.insert(words.end(), {flags::kToken, options.token});
    if (options.softnic) words.emplace_back(flags::kSoftnic);
    return words;
  };
  std::vector<std::string> accept = {"accept", options.host, "--within", "60s"};
  if (!options.expect.empty()) accept.insert(accept.end(), {"--expect", options.expect});
  if (pairs_of_gpus()) accept.insert(accept.end(), {"--pairs", "best"});
  return {{"this machine", with({"doctor"}, false)},
          {"both hosts", with({"doctor", options.host}, true)},
          {"every byte arrives", with({"verify", options.host, "--sizes", "1,4097,1M"}, true)},
          {"rates", with(std::move(accept), true)}};
}

/// Lines of a report that say what is wrong; of one that passed its last.
std::vector<std::string> telling_lines(const std::string& output, StepVerdict verdict) {
  constexpr std::string_view kWords[] = {"FAIL", "MISSED", "UNKNOWN", "likely:", "error:", "hint:", "fix:"};
  std::vector<std::string> lines;
  std::string last;
  std::size_t more = 0;
  for (const std::string_view each : split(output, '\n')) {
    const std::string line(trimmed(each));
    if (line.empty()) continue;
    last = line;
    const bool tells = std::any_of(std::begin(kWords), std::end(kWords),
                                   [&](std::string_view word) { return line.find(word) != line.npos; });
    if (!tells) continue;
    if (lines.size() < kMostStepLines) lines.push_back(line.substr(0, 200));
    else ++more;
  }
  if (verdict == StepVerdict::kPass || lines.empty()) return {last.substr(0, 200)};
  if (more > 0) lines.push_back(fmt::format("and {} lines more", more));
  return lines;
}

StepOutcome run_step(const Step& step) {
  std::vector<std::string> argv = {own_program()};
  argv.insert(argv.end(), step.words.begin(), step.words.end());
  const auto begin = std::chrono::steady_clock::now();
  const ProgramResult result = run_program(argv, kLongestStep);
  StepOutcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool exited = result.end == ProgramResult::End::kExited;
  const bool undecided = exited && result.status == static_cast<int>(ExitCode::kInconclusive);
  outcome.verdict = result.ok() ? StepVerdict::kPass : undecided ? StepVerdict::kUnsure : StepVerdict::kFail;
  outcome.lines =
      exited ? telling_lines(result.output, outcome.verdict) : std::vector<std::string>{"it did not end by itself"};
  return outcome;
}

int run_bringup(const BringupOptions& options) {
  constexpr const char* kNames[] = {"PASS  ", "UNSURE", "FAIL  "};
  std::cout << printable(fmt::format("Bring-up of {} with {}", report::collect_environment().hostname, options.host))
            << "\n\n"
            << std::flush;
  StepVerdict worst = StepVerdict::kPass;
  std::string first;
  for (const Step& step : steps_of(options)) {
    const StepOutcome outcome = run_step(step);
    const std::string command = fmt::format("gdrperf {}", fmt::join(step.words, " "));
    std::cout << printable(fmt::format("{}  {:<18} {:>6.1f} s  {}", kNames[static_cast<int>(outcome.verdict)],
                                       step.what, outcome.seconds, command))
              << '\n';
    for (const std::string& line : outcome.lines) std::cout << "          " << printable(line) << '\n';
    std::cout << std::flush;
    if (outcome.verdict != StepVerdict::kPass && first.empty()) first = command;
    worst = std::max(worst, outcome.verdict);
  }
  std::cout << "\nVerdict: "
            << (worst == StepVerdict::kPass   ? "ready"
                : worst == StepVerdict::kFail ? "not ready"
                                              : "undecided");
  if (!first.empty()) std::cout << printable(fmt::format("; run '{}' for details", first));
  std::cout << '\n';
  return static_cast<int>(worst == StepVerdict::kPass   ? ExitCode::kOk
                          : worst == StepVerdict::kFail ? ExitCode::kRegression
                                                        : ExitCode::kInconclusive);
}

}  // namespace

void add_bringup_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BringupOptions>();
  CLI::App* command =
      app.add_subcommand("bringup", "Bring up a new machine: doctor, verify, accept, and a summary page");
  command->add_option("HOST", options->host, "server: HOST or HOST:PORT ('gdrperf serve' runs there)")->required();
  command
      ->add_option_function<std::string>(
          "-p,--port",
          [options](const std::string& text) {
            options->port = static_cast<int>(parse_integer(text, flags::kPort, 1, 65535));
          },
          fmt::format("TCP port of the server (default: {})", kDefaultPort))
      ->type_name("PORT");
  command->add_option(flags::kToken, options->token, "file with the server's secret")->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--expect", [options](const std::string& text) { parse_expected(text), options->expect = text; },
          "what this machine should have, like gpus=8,nics=8,rate=400 (Gb/s of each port); gpus=4+4: by NUMA node")
      ->type_name("WHAT");
  add_softnic_flag(*command);
  command->footer(kBringupFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv& argv) {
      options->softnic = std::find(argv.begin(), argv.end(), flags::kSoftnic) != argv.end();
      return run_bringup(*options);
    };
  });
}

}  // namespace gdrperf::app
