#include <fmt/format.h>

#include "topo/readers/captured_text.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/flags.h"
#include "gdrperf/base/run_program.h"
#include "gdrperf/topo/nvidia_smi.h"

namespace gdrperf::topo {
namespace {

constexpr const char* kCommand = "nvidia-smi topo -m";

std::string first_line(std::string_view text) {
  const std::string_view line = trimmed(text.substr(0, text.find('\n')));
  return std::string(line.substr(0, 200));
}

Error unfinished(const ProgramResult& result, std::chrono::milliseconds timeout) {
  if (result.output.size() >= kMostProgramOutput) {
    return Error(ExitCode::kEnvironment,
                 fmt::format("{} printed more than {} bytes", kCommand, kMostProgramOutput));
  }
  return Error(ExitCode::kEnvironment,
               fmt::format("{} did not end within {} s", kCommand,
                           std::chrono::duration<double>(timeout).count()),
               "see whether nvidia-smi works by itself (a hanging driver needs a look at dmesg)");
}

}  // namespace

std::optional<std::string> run_nvidia_smi(std::chrono::milliseconds timeout) {
  const ProgramResult result = run_program({"nvidia-smi", "topo", "-m"}, timeout);
  if (result.end == ProgramResult::End::kNotInstalled) return std::nullopt;
  if (result.end == ProgramResult::End::kTimedOut) throw unfinished(result, timeout);
  if (result.ok()) return result.output;
  const bool exited = result.end == ProgramResult::End::kExited;
  throw Error(ExitCode::kEnvironment,
              fmt::format("{} failed ({} {}): {}", kCommand, exited ? "exit status" : "signal",
                          result.status, first_line(result.output)),
              fmt::format("see whether nvidia-smi works by itself, or give a capture with {} FILE", flags::kNvidiaSmi));
}

}  // namespace gdrperf::topo
