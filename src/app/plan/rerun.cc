#include "app/plan/rerun.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/spawn.h"
#include "gdrperf/compare/session.h"
#include "app/output/scratch_folder.h"
#include "app/output/terminal.h"

namespace gdrperf::app {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string with_file(std::string command, const std::string& file) {
  const std::string name = quoted(file);
  for (std::size_t at = 0; (at = command.find("{}", at)) != std::string::npos; at += name.size()) {
    command.replace(at, 2, name);
  }
  return command;
}

Error failed(const std::string& what) {
  return Error(ExitCode::kInconclusive, what, "run the command of --rerun by hand to see why");
}

void run_shell(const std::string& command) {
  // In the caller's environment and on its terminal; our standard output is ours.
  const int status = wait_for(spawn({.file = "/bin/sh", .argv = {"sh", "-c", command}, .environment = own_environment(),
                                     .output = STDERR_FILENO}));
  if (WIFSIGNALED(status)) throw failed(fmt::format("the command was killed by signal {}", WTERMSIG(status)));
  // A sweep without a stable run has measured all the same.
  const bool measured = WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == static_cast<int>(ExitCode::kInconclusive);
  if (!measured) {
    throw failed(fmt::format("the command ended with exit code {}", WEXITSTATUS(status)));
  }
}

}  // namespace

void run_again(const std::string& command, int times, compare::Side& side) {
  const ScratchFolder folder;
  for (int i = 1; i <= times; ++i) {
    say(fmt::format("rerun {} of {}", i, times));
    const std::string file = fmt::format("{}/{}.json", folder.path(), i);
    run_shell(with_file(command, file));
    std::error_code error;
    if (!std::filesystem::exists(file, error)) throw failed("the command wrote no document in place of {}");
    try {
      side.add(compare::read_session(file));
    } catch (const Error& problem) {
      throw failed(problem.what());
    }
  }
}

}  // namespace gdrperf::app
