#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gdrperf::report {

/// One host as a run found it. Empty strings and nullopt: not known here.
struct Environment {
  std::string hostname;
  std::string kernel;        ///< "Linux 6.1.0-18-amd64 x86_64"
  std::string os;            ///< PRETTY_NAME of os-release
  std::string cpu_model;
  int cpus_online = 0;
  int cpus_allowed = 0;      ///< this process may use (taskset, cgroup)
  int numa_nodes = 1;
  std::uint64_t memory_bytes = 0;
  std::string governor;      ///< cpufreq; several joined by ", "; "" in most VMs
  bool hypervisor = false;   ///< the CPU says it is virtual
  std::optional<std::uint64_t> memlock_limit_bytes;  ///< nullopt: unlimited
  std::string gpu_driver;    ///< version of the NVIDIA kernel driver; "" where there is none
  std::string clock_source;  ///< "tsc" or "clock_gettime": what times were read from
  std::string tool_version;
  bool operator==(const Environment&) const = default;
};

/// This host, now. Reads /proc, /sys and /etc below `root` ("" but in tests)
/// and calibrates the clock when that has not been done; never throws for what
/// cannot be read.
Environment collect_environment(const std::string& root = {});

/// As one line of JSON, with the keys of `hosts` in a result document: how a
/// server's environment reaches the client.
std::string to_json(const Environment& environment);
/// Back again. Unknown keys are ignored, missing ones keep their defaults;
/// throws peer_error when it is no JSON object or a value has the wrong type.
Environment environment_from_json(std::string_view text);

}  // namespace gdrperf::report
