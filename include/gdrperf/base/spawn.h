#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gdrperf {

/// Options of starting a program.
struct Spawn {
  std::string file;  ///< its path
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  bool empty_input = false;  ///< or this process's standard input
  int output = -1;           ///< descriptor for standard output; -1: this process's
  int errors = -1;           ///< the same for standard error
  bool own_group = false;    ///< a process group of its own
};

/// This process's variables, "NAME=value".
std::vector<std::string> own_environment();

/// Starts it and returns its process ID. Throws Error(kEnvironment).
pid_t spawn(const Spawn& program);

/// Waits for the end of a child that was spawned; its wait status. Throws Error(kEnvironment).
int wait_for(pid_t child);

}  // namespace gdrperf
