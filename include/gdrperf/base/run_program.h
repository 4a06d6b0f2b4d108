#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gdrperf {

/// End of a program: exit status, and its two outputs together.
struct ProgramResult {
  enum class End { kNotInstalled, kTimedOut, kExited, kSignalled };
  End end = End::kNotInstalled;
  int status = 0;  ///< exit status, or the signal
  std::string output;
  bool ok() const noexcept { return end == End::kExited && status == 0; }
};

/// Most a program may write: what writes more is stopped, and reads as kTimedOut.
inline constexpr std::size_t kMostProgramOutput = std::size_t{16} << 20;

/// Runs argv[0], a path or a program of the PATH or the sbin folders behind it,
/// without a shell, in the C locale and with an empty standard input. Both outputs come
/// back. After `timeout` it and its children are killed. What goes wrong on
/// this side reads as kNotInstalled.
ProgramResult run_program(const std::vector<std::string>& argv, std::chrono::milliseconds timeout);

}  // namespace gdrperf
