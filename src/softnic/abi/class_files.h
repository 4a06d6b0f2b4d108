#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What stands under /sys/class/infiniband/DEVICE for devices of ours: made-up
/// files for readers that know only the kernel's (abi_files.cc hands them out).
namespace gdrperf::softnic {

struct ClassEntry {
  bool folder = false;
  std::string text;                ///< of a file
  std::vector<std::string> names;  ///< in a folder
};

/// `path` as a program gave it; nothing for any path that is not one of a
/// software device's.
std::optional<ClassEntry> class_entry(std::string_view path);
/// A quick look: false for nearly every path there is.
bool may_be_class_path(const char* path) noexcept;

}  // namespace gdrperf::softnic
