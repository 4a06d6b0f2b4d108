#pragma once

#include <optional>
#include <string>

#include "abi/verbs/class_files.h"

/// Finds what a path leads to, through links of ours and of the kernel's. For
/// files.cc and folders.cc, which stand in for functions of libc.
namespace gdrperf::softnic {

enum class LastLink { kFollow, kKeep };

/// Target of a path.
struct ClassPath {
  std::optional<ClassEntry> entry;  ///< ours; none: the kernel's business
  /// Path to ask the kernel for instead of the one that was given.
  std::string path;
};

/// A quick look: false for nearly every path there is.
bool may_be_class_path(const char* path) noexcept;
/// Nothing: not under a folder of ours, and no link of ours on the way.
std::optional<ClassPath> find_class_path(const char* path, LastLink last = LastLink::kFollow);
/// The same of a path below `folder`, an open descriptor or AT_FDCWD.
std::optional<ClassPath> find_class_path_at(int folder, const char* path, LastLink last = LastLink::kFollow);

/// Descriptors of folders that programs have opened, for paths below them.
void remember_folder(int fd, const std::string& path);
/// Folder that this descriptor was opened for; empty: none of ours.
std::string remembered_folder(int fd);

}  // namespace gdrperf::softnic
