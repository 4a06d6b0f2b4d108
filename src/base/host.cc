#include "gdrperf/base/host.h"

#include <cstdint>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include "gdrperf/base/file.h"

namespace gdrperf {
namespace {

/// FNV-1a: tells apart, hides nothing that would have to be kept secret.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

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

}  // namespace gdrperf
