#include "gdrperf/base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gdrperf/base/error.h"

namespace gdrperf {
namespace {

/// Null at the end. `strings` outlive it.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& each : strings) result.push_back(const_cast<char*>(each.c_str()));
  result.push_back(nullptr);
  return result;
}

/// What this process ignores, and what its threads block, is not its children's.
void set_signals(posix_spawnattr_t& attributes, bool own_group) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int ignored : {SIGPIPE, SIGXFSZ}) ::sigaddset(&signals, ignored);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  const int group = own_group ? POSIX_SPAWN_SETPGROUP : 0;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) variables.emplace_back(*each);
  return variables;
}

pid_t spawn(const Spawn& program) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (program.empty_input) ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (program.output >= 0) ::posix_spawn_file_actions_adddup2(&actions, program.output, STDOUT_FILENO);
  if (program.errors >= 0) ::posix_spawn_file_actions_adddup2(&actions, program.errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  set_signals(attributes, program.own_group);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, program.file.c_str(), &actions, &attributes, pointers(program.argv).data(),
                                  pointers(program.environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw call_error("posix_spawn", error, program.file);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw call_error("waitpid", errno);
  }
  return status;
}

}  // namespace gdrperf
