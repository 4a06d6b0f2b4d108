#include "gdrperf/base/host.h"

#include <sys/auxv.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/file.h"
#include "gdrperf/base/text.h"

namespace gdrperf {
const std::string& host_identity() {
  static const std::string identity = [] {
    std::string boot = read_line_or_empty("/proc/sys/kernel/random/boot_id");
    if (boot.empty()) {
      std::random_device random;
      boot = fmt::format("{}-{}-{}", random(), random(), random());
    }
    return fmt::format("{:016x}", digest("gdrperf " + boot));
  }();
  return identity;
}

std::string own_program() {
  std::error_code error;
  const std::filesystem::path linked = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return linked;
  const auto* const name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (name == nullptr) return {};
  const std::filesystem::path found = std::filesystem::canonical(name, error);
  return error ? std::string() : found.string();
}

}  // namespace gdrperf
