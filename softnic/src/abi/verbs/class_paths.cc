#include "abi/verbs/class_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "abi/libc/kernel_only.h"
#include "gdrperf/base/error.h"

namespace gdrperf::softnic {
namespace {

constexpr int kMaxLinks = 40;

/// Of the kernel, whatever stands in for readlink; empty when it is no link.
std::string kernel_link(const std::string& path) {
  char target[PATH_MAX];
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, path.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

/// Goes along a path, part by part.
class Walk {
 public:
  explicit Walk(LastLink last) : last_(last) {}

  /// False: too many links.
  bool go(std::string rest) {
    int links = 0;
    while (true) {
      rest.erase(0, rest.find_first_not_of('/'));
      if (rest.empty()) return true;
      const std::size_t end = std::min(rest.find('/'), rest.size());
      const std::string part = rest.substr(0, end);
      rest.erase(0, end);
      if (part == ".") continue;
      if (part == "..") {
        at_.erase(at_.empty() ? 0 : at_.rfind('/'));
        continue;
      }
      // A slash at the end asks for what a link leads to.
      const std::string target = step(part, rest.empty());
      if (target.empty()) continue;
      if (++links > kMaxLinks) return false;
      if (target.front() == '/') at_.clear();
      rest = target + rest;
    }
  }
  const std::string& at() const { return at_; }
  /// Of what `at` is; and whether anything on the way was ours.
  std::optional<ClassEntry>& entry() { return entry_; }
  bool ours() const { return ours_; }

 private:
  /// One part further, unless it is a link to follow: where that leads.
  std::string step(const std::string& part, bool is_last) {
    const std::string next = at_ + "/" + part;
    entry_ = class_entry(next);
    const bool follow = !is_last || last_ == LastLink::kFollow;
    std::string target;
    if (entry_ && entry_->kind == EntryKind::kLink) {
      ours_ = true;
      if (follow) target = entry_->text;
    } else if (!entry_ && follow) {
      target = kernel_link(next);
    }
    if (target.empty()) at_ = next;
    return target;
  }

  LastLink last_;
  std::string at_;
  std::optional<ClassEntry> entry_;
  bool ours_ = false;
};

std::optional<ClassPath> find(const std::string& path, LastLink last) {
  Walk walk(last);
  if (!walk.go(path)) return std::nullopt;
  if (walk.at().empty()) return std::nullopt;
  // Components behind the last link, or where ".." led.
  auto entry = class_entry(walk.at());
  if (!entry && !walk.ours()) return std::nullopt;
  return ClassPath{std::move(entry), walk.at()};
}

struct OpenFolder {
  std::string path;
  dev_t device;
  ino_t number;
};

struct OpenFolders {
  std::mutex mutex;
  std::map<int, OpenFolder> all;
};
OpenFolders& open_folders() {
  static auto* const made = new OpenFolders();
  return *made;
}
std::atomic<bool> g_any_folder{false};

/// The kernel's own word: what stands in for fstat asks here.
bool kernel_identity(int fd, dev_t& device, ino_t& number) {
  struct statx status;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &status) != 0) return false;
  device = static_cast<dev_t>(status.stx_dev_major) << 32 | status.stx_dev_minor;
  number = status.stx_ino;
  return true;
}

}  // namespace

bool may_be_class_path(const char* path) noexcept {
  if (path == nullptr || path[0] != '/' || KernelOnly::now()) return false;
  if (path[1] == 's') {
    // Not all of /sys: allocators read there before anything of ours can run.
    for (const std::string_view start : {"/sys/class", "/sys/devices/softnic", "/sys/devices/virtual/misc",
                                         "/sys/devices/pci", "/sys/bus/pci", "/sys/dev/char"}) {
      if (std::strncmp(path, start.data(), start.size()) == 0) return true;
    }
    return false;
  }
  if (path[1] != 'd' || std::strncmp(path, "/dev", 4) != 0) return false;
  return path[4] == '\0' || std::strcmp(path, "/dev/") == 0 || std::strncmp(path, "/dev/infiniband", 15) == 0;
}

std::optional<ClassPath> find_class_path(const char* path, LastLink last) {
  if (!may_be_class_path(path)) return std::nullopt;
  const int error = errno;
  std::optional<ClassPath> found;
  try {
    found = find(path, last);
  } catch (const Error&) {
    // A device that cannot start has no entries; who asks for devices is told why.
  }
  errno = error;
  return found;
}

std::optional<ClassPath> find_class_path_at(int folder, const char* path, LastLink last) {
  if (path == nullptr || path[0] == '/' || folder == AT_FDCWD) return find_class_path(path, last);
  if (!g_any_folder.load(std::memory_order_relaxed) || KernelOnly::now()) return std::nullopt;
  const std::string base = remembered_folder(folder);
  if (base.empty()) return std::nullopt;
  // No path: the folder itself (AT_EMPTY_PATH).
  return find_class_path((base + "/" + path).c_str(), last);
}

void remember_folder(int fd, const std::string& path) {
  OpenFolder folder{path, 0, 0};
  if (!kernel_identity(fd, folder.device, folder.number)) return;
  OpenFolders& folders = open_folders();
  const std::lock_guard guard(folders.mutex);
  folders.all[fd] = folder;
  g_any_folder.store(true);
}

std::string remembered_folder(int fd) {
  if (!g_any_folder.load(std::memory_order_relaxed)) return {};
  OpenFolders& folders = open_folders();
  const std::lock_guard guard(folders.mutex);
  const auto found = folders.all.find(fd);
  if (found == folders.all.end()) return {};
  dev_t device;
  ino_t number;
  // The number may mean something else by now.
  if (kernel_identity(fd, device, number) && device == found->second.device && number == found->second.number) {
    return found->second.path;
  }
  folders.all.erase(found);
  return {};
}

}  // namespace gdrperf::softnic
