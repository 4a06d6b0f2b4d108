#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

struct DoctorOptions {
  std::vector<std::string> captures;
  bool json = false;
};

/// Registers `gdrperf doctor`; parsing fills `options`.
CLI::App* add_doctor_command(CLI::App& app, DoctorOptions& options);

/// Runs the checks, here or on captured text, and prints them; the exit code:
/// 1 when a check failed. Throws Error(kUsage) for a file that cannot be read.
int run_doctor(const DoctorOptions& options, std::ostream& out);

}  // namespace gdrperf::app
