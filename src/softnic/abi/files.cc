#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "abi/class_files.h"

/// The few functions of libc by which programs read sysfs: paths of a software
/// device lead to made-up files, everything else to libc. A file is a memfd
/// with the text of the moment, a folder a list of names.
namespace gdrperf::softnic {
namespace {

template <typename F>
F next_function(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}
#define SOFTNIC_NEXT(name) \
  ([] { \
    static const auto found = ::gdrperf::softnic::next_function<decltype(&::name)>(#name); \
    return found; \
  }())

/// Defines what programs call by the name `symbol`, whatever libc's headers make
/// of that name (large files, fortified calls).
#define SOFTNIC_STANDS_FOR(result, symbol, parameters) \
  __attribute__((visibility("default"))) result softnic_##symbol parameters __asm__(#symbol); \
  result softnic_##symbol parameters

struct Folder {
  std::vector<std::string> names;
  std::size_t next = 0;
  dirent entry{};
};

/// Folders that a program has open. DIR is opaque: its pointers are ours.
struct Folders {
  std::mutex mutex;
  std::map<DIR*, std::unique_ptr<Folder>> open;
  std::map<int, std::vector<std::string>> descriptors;  ///< opened, not yet fdopendir
};
Folders& folders() {
  static auto* const all = new Folders();
  return *all;
}
std::atomic<int> g_open_folders{0};

std::optional<ClassEntry> find_entry(const char* path) {
  if (!may_be_class_path(path)) return std::nullopt;
  return class_entry(path);
}

int open_entry(const ClassEntry& entry, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) {
    errno = EACCES;
    return -1;
  }
  if (!entry.folder && (flags & O_DIRECTORY) != 0) {
    errno = ENOTDIR;
    return -1;
  }
  const int fd = ::memfd_create("softnic-class", MFD_CLOEXEC);
  if (fd < 0) return fd;
  if (entry.folder) {
    Folders& all = folders();
    const std::lock_guard guard(all.mutex);
    all.descriptors[fd] = entry.names;
    ++g_open_folders;
    return fd;
  }
  [[maybe_unused]] const auto written = ::write(fd, entry.text.data(), entry.text.size());
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

DIR* new_folder(std::vector<std::string> names) {
  names.insert(names.begin(), {".", ".."});
  auto folder = std::make_unique<Folder>();
  folder->names = std::move(names);
  DIR* handle = reinterpret_cast<DIR*>(folder.get());
  Folders& all = folders();
  const std::lock_guard guard(all.mutex);
  all.open[handle] = std::move(folder);
  ++g_open_folders;
  return handle;
}

/// Null for a DIR of libc. Costs a load while no folder of ours is open.
Folder* folder_of(DIR* handle) {
  if (g_open_folders.load(std::memory_order_relaxed) == 0) return nullptr;
  Folders& all = folders();
  const std::lock_guard guard(all.mutex);
  const auto found = all.open.find(handle);
  return found == all.open.end() ? nullptr : found->second.get();
}

dirent* next_entry(Folder& folder) {
  if (folder.next == folder.names.size()) return nullptr;
  const std::string& name = folder.names[folder.next++];
  folder.entry = {};
  folder.entry.d_ino = folder.next;
  folder.entry.d_type = DT_UNKNOWN;
  std::snprintf(folder.entry.d_name, sizeof folder.entry.d_name, "%s", name.c_str());
  return &folder.entry;
}

int describe_entry(const ClassEntry& entry, struct stat* status) {
  *status = {};
  status->st_mode = entry.folder ? S_IFDIR | 0555 : S_IFREG | 0444;
  status->st_nlink = entry.folder ? 2 : 1;
  status->st_size = 4096;  // as sysfs says
  status->st_blksize = 4096;
  return 0;
}

int describe_entry_ex(const ClassEntry& entry, struct statx* status) {
  *status = {};
  status->stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_SIZE;
  status->stx_mode = static_cast<std::uint16_t>(entry.folder ? S_IFDIR | 0555 : S_IFREG | 0444);
  status->stx_nlink = entry.folder ? 2 : 1;
  status->stx_size = 4096;
  status->stx_blksize = 4096;
  return 0;
}

int may_access(int mode) {
  if ((mode & W_OK) == 0) return 0;
  errno = EACCES;
  return -1;
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {

#define SOFTNIC_OPEN(name) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, int flags, ...)) { \
    va_list arguments; \
    va_start(arguments, flags); \
    const mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments); \
    if (const auto entry = find_entry(path)) return open_entry(*entry, flags); \
    return SOFTNIC_NEXT(name)(path, flags, mode); \
  }
SOFTNIC_OPEN(open)
SOFTNIC_OPEN(open64)

#define SOFTNIC_OPENAT(name) \
  SOFTNIC_STANDS_FOR(int, name, (int folder, const char* path, int flags, ...)) { \
    va_list arguments; \
    va_start(arguments, flags); \
    const mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments); \
    if (const auto entry = find_entry(path)) return open_entry(*entry, flags); \
    return SOFTNIC_NEXT(name)(folder, path, flags, mode); \
  }
SOFTNIC_OPENAT(openat)
SOFTNIC_OPENAT(openat64)

#define SOFTNIC_FOPEN(name) \
  SOFTNIC_STANDS_FOR(FILE*, name, (const char* path, const char* mode)) { \
    const auto entry = find_entry(path); \
    if (!entry) return SOFTNIC_NEXT(name)(path, mode); \
    const int fd = open_entry(*entry, std::strpbrk(mode, "wa+") != nullptr ? O_RDWR : O_RDONLY); \
    return fd < 0 ? nullptr : ::fdopen(fd, mode); \
  }
SOFTNIC_FOPEN(fopen)
SOFTNIC_FOPEN(fopen64)

SOFTNIC_STANDS_FOR(int, access, (const char* path, int mode) noexcept) {
  return find_entry(path) ? may_access(mode) : SOFTNIC_NEXT(access)(path, mode);
}
SOFTNIC_STANDS_FOR(int, faccessat, (int folder, const char* path, int mode, int flags) noexcept) {
  return find_entry(path) ? may_access(mode) : SOFTNIC_NEXT(faccessat)(folder, path, mode, flags);
}

SOFTNIC_STANDS_FOR(int, stat, (const char* path, struct stat* status) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, status) : SOFTNIC_NEXT(stat)(path, status);
}
SOFTNIC_STANDS_FOR(int, lstat, (const char* path, struct stat* status) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, status) : SOFTNIC_NEXT(lstat)(path, status);
}
SOFTNIC_STANDS_FOR(int, fstatat, (int folder, const char* path, struct stat* status, int flags) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, status) : SOFTNIC_NEXT(fstatat)(folder, path, status, flags);
}
static_assert(sizeof(struct stat) == sizeof(struct stat64));
SOFTNIC_STANDS_FOR(int, stat64, (const char* path, struct stat64* status) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, reinterpret_cast<struct stat*>(status)) : SOFTNIC_NEXT(stat64)(path, status);
}
SOFTNIC_STANDS_FOR(int, lstat64, (const char* path, struct stat64* status) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, reinterpret_cast<struct stat*>(status)) : SOFTNIC_NEXT(lstat64)(path, status);
}
SOFTNIC_STANDS_FOR(int, fstatat64, (int folder, const char* path, struct stat64* status, int flags) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry(*entry, reinterpret_cast<struct stat*>(status))
               : SOFTNIC_NEXT(fstatat64)(folder, path, status, flags);
}
SOFTNIC_STANDS_FOR(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* status) noexcept) {
  const auto entry = find_entry(path);
  return entry ? describe_entry_ex(*entry, status) : SOFTNIC_NEXT(statx)(folder, path, flags, mask, status);
}

SOFTNIC_STANDS_FOR(DIR*, opendir, (const char* path)) {
  const auto entry = find_entry(path);
  if (!entry) return SOFTNIC_NEXT(opendir)(path);
  if (entry->folder) return new_folder(entry->names);
  errno = ENOTDIR;
  return nullptr;
}
SOFTNIC_STANDS_FOR(DIR*, fdopendir, (int fd)) {
  if (g_open_folders.load(std::memory_order_relaxed) != 0) {
    Folders& all = folders();
    std::unique_lock guard(all.mutex);
    const auto found = all.descriptors.find(fd);
    struct stat status;
    // A folder of ours is a memfd; the number may mean something else by now.
    if (found != all.descriptors.end() && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
      std::vector<std::string> names = std::move(found->second);
      all.descriptors.erase(found);
      --g_open_folders;
      guard.unlock();
      ::close(fd);
      return new_folder(std::move(names));
    }
  }
  return SOFTNIC_NEXT(fdopendir)(fd);
}
SOFTNIC_STANDS_FOR(struct dirent*, readdir, (DIR* handle)) {
  Folder* folder = folder_of(handle);
  return folder != nullptr ? next_entry(*folder) : SOFTNIC_NEXT(readdir)(handle);
}
static_assert(sizeof(struct dirent) == sizeof(struct dirent64));
SOFTNIC_STANDS_FOR(struct dirent64*, readdir64, (DIR* handle)) {
  Folder* folder = folder_of(handle);
  return folder != nullptr ? reinterpret_cast<struct dirent64*>(next_entry(*folder)) : SOFTNIC_NEXT(readdir64)(handle);
}
SOFTNIC_STANDS_FOR(void, rewinddir, (DIR* handle) noexcept) {
  if (Folder* folder = folder_of(handle)) {
    folder->next = 0;
  } else {
    SOFTNIC_NEXT(rewinddir)(handle);
  }
}
SOFTNIC_STANDS_FOR(int, dirfd, (DIR* handle) noexcept) {
  if (folder_of(handle) == nullptr) return SOFTNIC_NEXT(dirfd)(handle);
  errno = ENOTSUP;
  return -1;
}
SOFTNIC_STANDS_FOR(int, closedir, (DIR* handle)) {
  if (folder_of(handle) == nullptr) return SOFTNIC_NEXT(closedir)(handle);
  Folders& all = folders();
  const std::lock_guard guard(all.mutex);
  all.open.erase(handle);
  --g_open_folders;
  return 0;
}

}  // extern "C"
