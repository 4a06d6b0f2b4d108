#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/command.h"
#include "app/options/options.h"
#include "app/client/softnic_exec.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/version.h"
#include "gdrperf/mem/gpudirect.h"
#include "gdrperf/report/environment.h"
#include "gdrperf/verbs/library.h"
#include "app/options/help_format.h"
#include "app/options/late_options.h"
#include "app/options/parse_words.h"
#include "app/test/perftest.h"
#include "app/process_setup.h"
#include "app/plan/resume.h"

namespace gdrperf::app {
namespace {

constexpr const char* kProgramFooter = R"(
gdrperf COMMAND --help shows options, defaults and units.

    on the server:   gdrperf serve
    on the client:   gdrperf write_bw HOST -a
    without a NIC:   gdrperf sweep --local --softnic

Exit codes: 0 ok, 1 regression or failed check, 2 usage, 3 this machine cannot
(device, memory, port, disk), 4 inconclusive, 5 the peer failed or data was wrong.)";

std::string version_text() {
  const verbs::Library library = verbs::library();
  const std::string cuda = mem::cuda_runtime_version();
  const report::Environment here = report::collect_environment();
  return fmt::format("gdrperf {} ({})\nlibibverbs: {}{}\nCUDA runtime: {}\nNVIDIA driver: {}\nkernel: {}",
                     tool_version(), tool_git(), library.version.empty() ? "" : library.version + ", ", library.file,
                     cuda.empty() ? "not built in" : cuda, here.gpu_driver.empty() ? "none here" : here.gpu_driver,
                     here.kernel);
}

/// All commands; `action` is that of the one which parsing has found.
struct Program {
  CLI::App app{"RDMA bandwidth and latency between two hosts, compared with what the path can carry", "gdrperf"};
  Action action;

  Program() {
    wrap_help(app);
    app.set_version_flag("--version", version_text,
                         "Print the versions of gdrperf, libibverbs, CUDA, driver and kernel");
    app.footer(kProgramFooter);
    app.allow_extras();
    app.prefix_command(false);
    // One: what stands behind it is its own, also where a command is called like that (man write_bw).
    app.require_subcommand(0, 1);
    for (AddCommand* add : kCommands) add(app, action);
    // Not in gdrperf-doctor, which is for machines without libibverbs.
    add_softnic_flag(*app.get_subcommand("doctor"));
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) command->allow_extras();
    for (const Test test : all_tests())
      app.get_subcommand(to_string(test))->set_version_flag("-V,--version", version_text)->group("");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Throws CLI::Success for --help and --version, Error.
  void parse(const Argv& words) {
    set_words(words);
    try {
      // CLI11 takes them from the last to the first, without the program's name.
      app.parse(Argv(words.rbegin(), words.rend() - 1));
    } catch (const CLI::Success&) {
      throw;
    } catch (const CLI::ParseError& error) {
      throw parse_failure(app, error);
    }
    refuse_unknown(app);
  }
};

}  // namespace

int run_command_line(int argc, char** argv) {
  set_up_process();
  Argv words = as_own_command(Argv(argv, argv + argc));
  if (show_perftest_help(words, std::cout)) return static_cast<int>(ExitCode::kOk);
  if (const std::string file = resumed_file(words); !file.empty()) words = resumed_command_line(words[0], file);
  for (const std::string& word : words) {
    if (word == flags::kSoftnic) enter_softnic(argv);
  }
  Program program;
  try {
    program.parse(words);
  } catch (const CLI::Success& success) {  // --help, --version
    return program.app.exit(success);
  }
  if (!program.action) {
    std::cerr << program.app.help();
    return static_cast<int>(ExitCode::kUsage);
  }
  return program.action(words);
}

void check_command_line(const Argv& words) {
  Program program;
  try {
    program.parse(words);
  } catch (const CLI::Success&) {
    throw usage_error("asks for help or a version", "leave it out");
  }
}

}  // namespace gdrperf::app
