#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gdrperf::topo {

/// Files of /sys and /proc of one machine: this one, a copy, or a recording. Paths are those of that machine
/// ("/sys/bus/pci/devices"). Nothing here throws for what is missing.
class SysfsFiles {
 public:
  virtual ~SysfsFiles() = default;

  /// The first `most` bytes of a file; "" where it cannot be read.
  virtual std::string read(const std::string& path, std::size_t most) const = 0;
  /// Names in a folder, sorted; empty where there is no such folder.
  virtual std::vector<std::string> list(const std::string& folder) const = 0;
  /// The path with every symbolic link followed; `path` itself where there is none on the way, "" where it leads
  /// nowhere.
  virtual std::string resolve(const std::string& path) const = 0;
  /// Last name of what a symbolic link names, whether or not that is there; "" where `path` is no link.
  virtual std::string link_name(const std::string& path) const = 0;
};

}  // namespace gdrperf::topo
