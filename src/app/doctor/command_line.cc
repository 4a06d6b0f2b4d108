#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "gdrperf/base/error.h"

namespace gdrperf::app {

int run_doctor_command_line(int argc, char** argv) {
  CLI::App app("Diagnose why RDMA or GPUDirect RDMA does not work or is slow", "gdrperf-doctor");
  app.require_subcommand(0, 1);
  Action action;
  add_doctor_command(app, action);
  // As if `doctor` had been typed.
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) words.emplace_back(argv[i]);
  words.emplace_back("doctor");
  try {
    app.parse(words);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw usage_error(error.what(), "'gdrperf-doctor --help' shows what is accepted");
  }
  return action ? action(Argv(argv, argv + argc)) : static_cast<int>(ExitCode::kUsage);
}

}  // namespace gdrperf::app
