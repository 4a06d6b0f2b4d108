// gdrperf run: the tests of a scenario's file, one after the other, each as a process of its own.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/client/stop_signal.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/spawn.h"
#include "gdrperf/report/scenario_document.h"
#include "app/plan/scenario.h"
#include "app/output/scratch_folder.h"
#include "app/output/sink.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

constexpr const char* kRunFooter = R"(
FILE has a section for each test, in the form of fio's job files:

  # comment
  [global]            options of all tests
  host = node2
  [small writes]
  test = write_lat    a test's command, or sweep
  size = 8
  [large writes]
  test = write_bw
  size = 1M
  bidirectional       a flag stands alone

Options are named as on the command line. All are checked before the first test
begins. If a test fails, the next one still runs; the exit code is the worst of all.
Ctrl-C ends the current test and the scenario.)";

struct RunOptions {
  std::string file;
  std::string json;
  bool dry_run = false;
  bool progress = false;
  Talk talk = Talk::kUsual;
  std::string colour;
  std::vector<std::string> only;
};

/// Throws for a command line that `gdrperf` would not take; names the line whose option it is.
void check_test(const Scenario& scenario, const ScenarioTest& test, const std::string& program) {
  const auto problem = [&](const std::vector<std::string>& words) -> std::optional<Error> {
    Argv argv = words;
    argv.insert(argv.begin(), program);
    try {
      check_command_line(argv);
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  };
  const std::optional<Error> whole = problem(test.words());
  if (!whole) return;
  ScenarioTest part = test;
  part.options.clear();
  for (const ScenarioOption& each : test.options) {
    part.options.push_back(each);
    const std::optional<Error> error = problem(part.words());
    if (error && std::string_view(error->what()) == whole->what()) throw scenario.at(each.line, *whole);
  }
  throw scenario.at(test.line, *whole);
}

/// Scenario's tests, or those that --only names.
std::vector<ScenarioTest> wanted(const Scenario& scenario, const std::vector<std::string>& only) {
  if (only.empty()) return scenario.tests;
  std::vector<ScenarioTest> tests;
  for (const std::string& name : only) {
    const auto found =
        std::find_if(scenario.tests.begin(), scenario.tests.end(), [&](const auto& test) { return test.name == name; });
    if (found != scenario.tests.end()) {
      tests.push_back(*found);
      continue;
    }
    std::vector<std::string> names;
    for (const ScenarioTest& test : scenario.tests) names.push_back(test.name);
    throw usage_error(fmt::format("--only '{}': no such test in {}", name, scenario.file),
                      fmt::format("there are {}", fmt::join(names, ", ")));
  }
  return tests;
}

class ScenarioRun {
 public:
  ScenarioRun(const RunOptions& options, const Scenario& scenario, std::vector<ScenarioTest> tests, const Argv& argv,
              const StopSignal& stop)
      : options_(options),
        scenario_(scenario),
        tests_(std::move(tests)),
        stop_(stop),
        sink_(options.json),
        document_(report::this_tool(argv), scenario.file, scenario.text, names_of(tests_)) {}

  int run() {
    for (std::size_t at = 0; at < tests_.size() && !stop_.triggered(); ++at) run_test(tests_[at], at);
    if (sink_.given() && sink_.is_stream() && document_.any()) sink_.write(document_.to_json());
    if (sink_.given() && !document_.any()) say(fmt::format("{} is not written: no test has a result", options_.json));
    return worst_;
  }

 private:
  static std::vector<std::string> names_of(const std::vector<ScenarioTest>& tests) {
    std::vector<std::string> names;
    for (const ScenarioTest& test : tests) names.push_back(test.name);
    return names;
  }

  Argv words_of(const ScenarioTest& test, const std::string& document) const {
    Argv words = test.words();
    words.insert(words.begin(), "gdrperf");
    if (options_.dry_run) {
      words.push_back("--dry-run");
      return words;
    }
    if (sink_.given()) words.insert(words.end(), {"--json", document});
    if (options_.progress) words.push_back("--progress");
    if (options_.talk == Talk::kQuiet) words.push_back("--quiet");
    if (options_.talk == Talk::kVerbose) words.push_back("--verbose");
    if (!options_.colour.empty()) words.insert(words.end(), {"--color", options_.colour});
    return words;
  }

  void run_test(const ScenarioTest& test, std::size_t at) {
    const std::string file = fmt::format("{}/{}.json", scratch_.path(), at);
    if (options_.talk != Talk::kQuiet) {
      std::ostream& out = sink_.is_stdout() ? std::cerr : std::cout;
      out << fmt::format("{}[{}/{}] {}: gdrperf {}\n", at == 0 ? "" : "\n", at + 1, tests_.size(), printable(test.name),
                         printable(fmt::format("{}", fmt::join(test.words(), " "))))
          << std::flush;
    }
    Spawn program;
    program.file = "/proc/self/exe";
    program.argv = words_of(test, file);
    program.environment = own_environment();
    if (sink_.is_stdout()) program.output = STDERR_FILENO;
    const int status = wait(spawn(program));
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::kEnvironment);
    if (WIFSIGNALED(status) && !stop_.triggered()) {
      say(fmt::format("{}:{}: [{}] was ended by signal {}", scenario_.file, test.line, test.name, WTERMSIG(status)));
    } else if (code != 0) {
      say(fmt::format("{}:{}: [{}] ended with exit code {}", scenario_.file, test.line, test.name, code));
    }
    worst_ = std::max(worst_, code);
    if (!sink_.given() || options_.dry_run) return;
    std::error_code none;
    document_.add({test.name, test.line, test.words(), code},
                  std::filesystem::exists(file, none) ? read_file(file, kLargestDocument) : "");
    if (!sink_.is_stream() && document_.any()) sink_.write(document_.to_json());
  }

  /// The end of `child`, which is told to stop when we are; a terminal tells it as well.
  int wait(pid_t child) const {
    bool told = false;
    int status = 0;
    while (true) {
      const pid_t ended = ::waitpid(child, &status, WNOHANG);
      if (ended == child) return status;
      if (ended < 0 && errno != EINTR) throw call_error("waitpid", errno);
      if (stop_.triggered() && !told) {
        // Once is enough: the second one ends it at once.
        told = true;
        if (stop_.signal() != SIGINT || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) ::kill(child, stop_.signal());
      }
      ::usleep(20'000);
    }
  }

  static constexpr std::size_t kLargestDocument = std::size_t{128} << 20;

  const RunOptions& options_;
  const Scenario& scenario_;
  std::vector<ScenarioTest> tests_;
  const StopSignal& stop_;
  Sink sink_;
  ScratchFolder scratch_;
  report::ScenarioDocument document_;
  int worst_ = 0;
};

int run_scenario(const RunOptions& options, const Argv& argv) {
  Sink(options.json).check("--json");
  const Scenario scenario = read_scenario(options.file);
  const std::vector<ScenarioTest> tests = wanted(scenario, options.only);
  for (const ScenarioTest& test : tests) check_test(scenario, test, argv.front());
  StopSignal stop;
  int code = 0;
  {
    const StopOnSignals on_signals(stop);
    code = ScenarioRun(options, scenario, tests, argv, stop).run();
  }
  if (stop.triggered()) end_as_signalled(stop);
  return code;
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run the tests of a scenario file");
  command->add_option("FILE", options->file, "scenario ('-': standard input)")->required();
  command->add_option("--only", options->only, "only tests with these names")->type_name("NAMES")->delimiter(',');
  command->add_flag("--dry-run", options->dry_run, "print the plan, the time and the memory of each test, and exit");
  command->add_option("--json", options->json, "write one JSON document of all tests ('-': standard output)")
      ->type_name("FILE");
  command->add_flag("--progress", options->progress, "report progress once a second, as lines on standard error");
  CLI::Option* quiet = command->add_flag_callback("--quiet", [options] { options->talk = Talk::kQuiet; },
                                                  "print no table and no progress");
  command
      ->add_flag_callback(
          "-v,--verbose", [options] { options->talk = Talk::kVerbose; }, "print how each row was measured")
      ->excludes(quiet);
  command->add_option("--color,--colour", options->colour, "colour: auto, always, never")->type_name("WHEN");
  command->footer(kRunFooter);
  command->final_callback([options, &action] {
    action = [options](const Argv& argv) { return run_scenario(*options, argv); };
  });
}

}  // namespace gdrperf::app
