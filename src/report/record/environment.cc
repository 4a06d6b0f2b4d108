#include "gdrperf/report/environment.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/cpu.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/printable.h"
#include "gdrperf/base/version.h"
#include "gdrperf/topo/nvidia_proc.h"
#include "report/record/environment_json.h"

namespace gdrperf::report {
namespace {

/// As /etc/os-release has values, quoted or not.
std::string unquoted(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\"'");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\"'") - first + 1));
}

/// The value of the first line "`key``separator`value"; "" when there is none.
std::string value_of(const std::string& path, std::string_view key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(separator);
    if (at == std::string::npos || unquoted(std::string_view(line).substr(0, at)) != key) continue;
    return unquoted(std::string_view(line).substr(at + 1));
  }
  return {};
}

std::uint64_t leading_number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int count_numa_nodes(const std::string& root) {
  std::error_code error;
  int nodes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(root + "/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    nodes += name.size() > 4 && name.starts_with("node") &&
             name.find_first_not_of("0123456789", 4) == std::string::npos;
  }
  return std::max(nodes, 1);
}

std::string governors(const std::string& root, const std::vector<int>& cpus) {
  std::set<std::string> found;
  for (const int cpu : cpus) {
    found.insert(read_line_or_empty(
        fmt::format("{}/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", root, cpu)));
  }
  found.erase("");
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace

Environment collect_environment(const std::string& root) {
  Environment result;
  utsname names{};
  if (::uname(&names) == 0) {
    result.hostname = names.nodename;
    result.kernel = fmt::format("{} {} {}", names.sysname, names.release, names.machine);
  }
  result.os = value_of(root + "/etc/os-release", "PRETTY_NAME", '=');
  result.cpu_model = value_of(root + "/proc/cpuinfo", "model name", ':');
  const std::string flags = " " + value_of(root + "/proc/cpuinfo", "flags", ':') + " ";
  result.hypervisor = flags.find(" hypervisor ") != std::string::npos;
  const std::vector<int> cpus = allowed_cpus();
  result.cpus_online = static_cast<int>(std::max(0L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  result.cpus_allowed = static_cast<int>(cpus.size());
  result.numa_nodes = count_numa_nodes(root);
  result.memory_bytes = leading_number(value_of(root + "/proc/meminfo", "MemTotal", ':')) * 1024;
  result.governor = governors(root, cpus);
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    result.memlock_limit_bytes = limit.rlim_cur;
  }
  result.gpu_driver = topo::nvidia_driver_version(root);
  result.clock_source = Clock::source();
  result.tool_version = tool_version();
  return result;
}

Json environment_json(const Environment& environment) {
  const auto& limit = environment.memlock_limit_bytes;
  return {{"hostname", text_or_null(environment.hostname)},
          {"kernel", text_or_null(environment.kernel)},
          {"os", text_or_null(environment.os)},
          {"cpu_model", text_or_null(environment.cpu_model)},
          {"cpus_online", environment.cpus_online},
          {"cpus_allowed", environment.cpus_allowed},
          {"numa_nodes", environment.numa_nodes},
          {"memory_bytes", environment.memory_bytes},
          {"governor", text_or_null(environment.governor)},
          {"hypervisor", environment.hypervisor},
          {"memlock_limit_bytes", limit ? Json(*limit) : Json(nullptr)},
          {"gpu_driver", text_or_null(environment.gpu_driver)},
          {"clock_source", text_or_null(environment.clock_source)},
          {"tool_version", text_or_null(environment.tool_version)}};
}

std::string to_json(const Environment& environment) {
  return environment_json(environment).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Environment environment_from_json(std::string_view text) {
  Environment result;
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) throw peer_error("environment: not a JSON object");
    const auto get = [&](const char* key, auto& value) {
      const auto found = json.find(key);
      if (found == json.end() || found->is_null()) return;
      found->get_to(value);
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) value = printable(value);
    };
    get("hostname", result.hostname);
    get("kernel", result.kernel);
    get("os", result.os);
    get("cpu_model", result.cpu_model);
    get("cpus_online", result.cpus_online);
    get("cpus_allowed", result.cpus_allowed);
    get("numa_nodes", result.numa_nodes);
    get("memory_bytes", result.memory_bytes);
    get("governor", result.governor);
    get("hypervisor", result.hypervisor);
    std::uint64_t limit = 0;
    const auto found = json.find("memlock_limit_bytes");
    if (found != json.end() && !found->is_null()) {
      get("memlock_limit_bytes", limit);
      result.memlock_limit_bytes = limit;
    }
    get("gpu_driver", result.gpu_driver);
    get("clock_source", result.clock_source);
    get("tool_version", result.tool_version);
  } catch (const Json::exception& error) {
    throw peer_error(fmt::format("environment: {}", error.what()));
  }
  return result;
}

}  // namespace gdrperf::report
