#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Made-up entries of sysfs and /dev for devices of ours: files, folders,
/// links and device files, for readers that know only the kernel's. The
/// functions of libc in files.cc and folders.cc hand them out.
namespace gdrperf::softnic {

enum class EntryKind { kFile, kFolder, kLink, kDevice };

struct ClassName {
  std::string name;
  EntryKind kind;
};

struct ClassEntry {
  EntryKind kind = EntryKind::kFile;
  std::string text;              ///< of a file; where a link leads
  std::uint64_t number = 0;      ///< inode
  dev_t device = 0;              ///< of a device file
};

/// Entry at `path`: absolute, without links, dots and slashes at its end.
std::optional<ClassEntry> class_entry(const std::string& path);
/// Entries of the folder at `path`, as class_entry() takes it: ours; the kernel may have others there.
std::vector<ClassName> class_names(const std::string& path);

}  // namespace gdrperf::softnic
