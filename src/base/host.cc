#include "gdrperf/base/host.h"

#include <cstdint>
#include <random>
#include <string_view>

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

}  // namespace gdrperf
