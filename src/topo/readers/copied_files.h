#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gdrperf/topo/sysfs_files.h"

namespace gdrperf::topo {

/// Two folders that hold what a machine has below /sys and /proc: those of this machine, or copies.
class CopiedFiles final : public SysfsFiles {
 public:
  CopiedFiles(const std::filesystem::path& sys, std::filesystem::path proc);

  /// Unbuffered: of a configuration space the device itself is asked for every four bytes.
  std::string read(const std::string& path, std::size_t most) const override;
  std::vector<std::string> list(const std::string& folder) const override;
  std::string resolve(const std::string& path) const override;
  std::string link_name(const std::string& path) const override;

 private:
  std::filesystem::path place_of(const std::string& path) const;
  std::filesystem::path plain_place_of(const std::string& path) const;
  /// With the links followed that a copy holds as text.
  std::filesystem::path with_lost_links(const std::filesystem::path& plain) const;
  /// Target that a file of a copy made without links holds as its text; "" for any other file.
  static std::string lost_target(const std::filesystem::path& place);

  std::filesystem::path sys_;
  std::filesystem::path proc_;
  std::filesystem::path real_sys_;
};

}  // namespace gdrperf::topo
