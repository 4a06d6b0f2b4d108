#include "gdrperf/mem/available.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "mem/cuda/memory.h"
#include "gdrperf/mem/kind.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::mem {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // "max", or no such file
}

/// The figure behind `name` in a file of names and figures; 0: there is none.
std::uint64_t named_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string first;
    std::uint64_t value = 0;
    if (words >> first >> value && first == name) return value;
  }
  return 0;
}

struct Files {
  const char* limit;
  const char* used;
  const char* reclaimable;  ///< in memory.stat
};
constexpr Files kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Files kVersion2{"/memory.max", "/memory.current", "inactive_file"};

std::uint64_t left_in(const std::string& folder, const Files& files) {
  const std::optional<std::uint64_t> limit = number_in(folder + files.limit);
  const std::optional<std::uint64_t> used = number_in(folder + files.used);
  if (!limit || !used) return kUnlimited;
  const std::uint64_t reclaimable = named_in(folder + "/memory.stat", files.reclaimable);
  const std::uint64_t held = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, held);
}

/// The least that the group and those around it leave. In a container the group's own
/// folder may be the mount itself.
std::uint64_t left_in_groups(const std::string& mount, std::string group, const Files& files) {
  std::uint64_t left = left_in(mount, files);
  while (group.size() > 1) {
    left = std::min(left, left_in(mount + group, files));
    group.resize(group.find_last_of('/'));
  }
  return left;
}

std::uint64_t left_by_groups(const std::string& root) {
  std::uint64_t left = kUnlimited;
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") left = std::min(left, left_in_groups(root + "/sys/fs/cgroup", group, kVersion2));
    if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups(root + "/sys/fs/cgroup/memory", group, kVersion1));
    }
  }
  return left;
}

}  // namespace

std::uint64_t available_bytes(const std::string& root) {
  const std::uint64_t by_kernel = named_in(root + "/proc/meminfo", "MemAvailable:") * 1024;
  const std::uint64_t by_groups = left_by_groups(root);
  if (by_kernel == 0) return by_groups == kUnlimited ? 0 : by_groups;
  return std::min(by_kernel, by_groups);
}

std::uint64_t available_gpu_bytes(const std::string& text) {
  const Kind kind = parse_kind(text, own_flag<&EndSpec::buffer>());
  if (of_other_maker(kind)) return 0;
  return on_gpu(kind) ? cuda::free_bytes(kind) : 0;
}

}  // namespace gdrperf::mem
