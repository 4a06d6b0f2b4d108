#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "abi/verbs/class_paths.h"
#include "abi/libc/kernel_only.h"
#include "abi/libc/libc_functions.h"
#include "cm/wire/files.h"

/// Functions of libc that open and describe files: paths of a software device
/// lead to made-up ones, everything else to libc. A file is a memfd with the
/// text of the moment. Folders are in folders.cc.
namespace gdrperf::softnic {
namespace {

/// A folder that the kernel has as well is the kernel's, with our names in it.
bool kernel_has(const std::string& path) {
  const KernelOnly aside;
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/// Ours alone.
bool is_made_up(const ClassPath& path) {
  return path.entry && (path.entry->kind != EntryKind::kFolder || !kernel_has(path.path));
}

int refuse(int error) {
  errno = error;
  return -1;
}

int open_text(const ClassEntry& entry) {
  const int fd = ::memfd_create("softnic-class", MFD_CLOEXEC);
  if (fd < 0) return fd;
  [[maybe_unused]] const auto written = ::write(fd, entry.text.data(), entry.text.size());
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

int open_folder(const ClassPath& path, int flags) {
  // Any real folder will do: what is in it is asked of us.
  const bool real = kernel_has(path.path);
  int fd;
  {
    const KernelOnly aside;
    fd = ::open(real ? path.path.c_str() : "/proc/self/fdinfo", flags & ~O_CREAT);
  }
  if (fd >= 0) remember_folder(fd, path.path);
  return fd;
}

/// Of what is ours.
int open_entry(const ClassPath& path, int flags) {
  const ClassEntry& entry = *path.entry;
  if (entry.kind == EntryKind::kFolder) return open_folder(path, flags);
  if ((flags & O_DIRECTORY) != 0) return refuse(ENOTDIR);
  if (entry.kind == EntryKind::kLink) return refuse(ELOOP);  // O_NOFOLLOW
  if (entry.kind == EntryKind::kFile && (flags & O_ACCMODE) != O_RDONLY) return refuse(EACCES);
  if (entry.device == makedev(kCmMajor, kCmMinor)) return open_cm_file(flags);
  return open_text(entry);
}

mode_t mode_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFolder: return S_IFDIR | 0555;
    case EntryKind::kLink: return S_IFLNK | 0777;
    case EntryKind::kDevice: return S_IFCHR | 0666;
    case EntryKind::kFile: break;
  }
  return S_IFREG | 0444;
}

off_t size_of(const ClassEntry& entry) {
  if (entry.kind == EntryKind::kLink) return static_cast<off_t>(entry.text.size());
  return entry.kind == EntryKind::kFile ? 4096 : 0;  // as sysfs says
}

const dev_t kOurFileSystem = makedev(0, 0x5f);

int describe_entry(const ClassEntry& entry, struct stat* status) {
  *status = {};
  status->st_dev = kOurFileSystem;
  status->st_ino = entry.number;
  status->st_mode = mode_of(entry.kind);
  status->st_nlink = entry.kind == EntryKind::kFolder ? 2 : 1;
  status->st_rdev = entry.device;
  status->st_size = size_of(entry);
  status->st_blksize = 4096;
  return 0;
}

int describe_entry_ex(const ClassEntry& entry, struct statx* status) {
  *status = {};
  status->stx_mask = STATX_BASIC_STATS;
  status->stx_dev_major = major(kOurFileSystem);
  status->stx_dev_minor = minor(kOurFileSystem);
  status->stx_ino = entry.number;
  status->stx_mode = static_cast<std::uint16_t>(mode_of(entry.kind));
  status->stx_nlink = entry.kind == EntryKind::kFolder ? 2 : 1;
  status->stx_rdev_major = major(entry.device);
  status->stx_rdev_minor = minor(entry.device);
  status->stx_size = static_cast<std::uint64_t>(size_of(entry));
  status->stx_blksize = 4096;
  return 0;
}

int may_access(const ClassEntry& entry, int mode) {
  const bool writable = entry.kind == EntryKind::kDevice;
  if ((mode & W_OK) != 0 && !writable) return refuse(EACCES);
  if ((mode & X_OK) != 0 && entry.kind != EntryKind::kFolder) return refuse(EACCES);
  return 0;
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

LastLink last_for_open(int flags) { return (flags & (O_NOFOLLOW | O_EXCL)) != 0 ? LastLink::kKeep : LastLink::kFollow; }
LastLink last_for_stat(int flags) { return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? LastLink::kKeep : LastLink::kFollow; }

int open_flags(const char* mode) { return std::strpbrk(mode, "wa+") != nullptr ? O_RDWR : O_RDONLY; }

/// Calls `ours` for a path of ours; else `theirs`, for the path that the
/// kernel knows.
template <typename Ours, typename Theirs>
auto choose(const std::optional<ClassPath>& found, const char* given, Ours&& ours, Theirs&& theirs) {
  if (found && is_made_up(*found)) return ours(*found);
  return theirs(found ? found->path.c_str() : given);
}

/// Path that an open descriptor of ours was opened for; empty: none of ours.
std::string opened_path(int fd) { return is_cm_file(fd) ? "/dev/infiniband/rdma_cm" : remembered_folder(fd); }

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

// NOLINTBEGIN(clang-diagnostic-reserved-identifier): glibc's fortified calls begin with two underscores
extern "C" {

#define SOFTNIC_OPEN(name) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, int flags, ...)) { \
    va_list arguments; \
    va_start(arguments, flags); \
    const mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments); \
    const auto found = find_class_path(path, last_for_open(flags)); \
    if (found && found->entry) return open_entry(*found, flags); \
    return SOFTNIC_NEXT(name)(found ? found->path.c_str() : path, flags, mode); \
  }
SOFTNIC_OPEN(open)
SOFTNIC_OPEN(open64)

#define SOFTNIC_OPENAT(name) \
  SOFTNIC_STANDS_FOR(int, name, (int folder, const char* path, int flags, ...)) { \
    va_list arguments; \
    va_start(arguments, flags); \
    const mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments); \
    const auto found = find_class_path_at(folder, path, last_for_open(flags)); \
    if (found && found->entry) return open_entry(*found, flags); \
    return SOFTNIC_NEXT(name)(folder, found ? found->path.c_str() : path, flags, mode); \
  }
SOFTNIC_OPENAT(openat)
SOFTNIC_OPENAT(openat64)

// Fortified calls.
#define SOFTNIC_OPEN_2(name) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, int flags)) { \
    const auto found = find_class_path(path, last_for_open(flags)); \
    if (found && found->entry) return open_entry(*found, flags); \
    return SOFTNIC_NEXT(name)(found ? found->path.c_str() : path, flags); \
  }
SOFTNIC_OPEN_2(__open_2)
SOFTNIC_OPEN_2(__open64_2)

#define SOFTNIC_OPENAT_2(name) \
  SOFTNIC_STANDS_FOR(int, name, (int folder, const char* path, int flags)) { \
    const auto found = find_class_path_at(folder, path, last_for_open(flags)); \
    if (found && found->entry) return open_entry(*found, flags); \
    return SOFTNIC_NEXT(name)(folder, found ? found->path.c_str() : path, flags); \
  }
SOFTNIC_OPENAT_2(__openat_2)
SOFTNIC_OPENAT_2(__openat64_2)

#define SOFTNIC_FOPEN(name) \
  SOFTNIC_STANDS_FOR(FILE*, name, (const char* path, const char* mode)) { \
    const auto found = find_class_path(path); \
    if (!found || !found->entry) return SOFTNIC_NEXT(name)(found ? found->path.c_str() : path, mode); \
    const int fd = open_entry(*found, open_flags(mode)); \
    return fd < 0 ? nullptr : ::fdopen(fd, mode); \
  }
SOFTNIC_FOPEN(fopen)
SOFTNIC_FOPEN(fopen64)

#define SOFTNIC_ACCESS(name) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, int mode) noexcept) { \
    return choose(find_class_path(path), path, [&](const ClassPath& it) { return may_access(*it.entry, mode); }, \
                  [&](const char* real) { return SOFTNIC_NEXT(name)(real, mode); }); \
  }
SOFTNIC_ACCESS(access)
SOFTNIC_ACCESS(eaccess)
SOFTNIC_ACCESS(euidaccess)
SOFTNIC_STANDS_FOR(int, faccessat, (int folder, const char* path, int mode, int flags) noexcept) {
  return choose(find_class_path_at(folder, path, last_for_stat(flags)), path,
                [&](const ClassPath& it) { return may_access(*it.entry, mode); },
                [&](const char* real) { return SOFTNIC_NEXT(faccessat)(folder, real, mode, flags); });
}

static_assert(sizeof(struct stat) == sizeof(struct stat64));

// Before glibc 2.33 there are none of these to be found, and whoever calls them (this library does) has them linked in.
static int kernels_stat(int folder, const char* path, struct stat* status, int flags) noexcept {
  return static_cast<int>(::syscall(SYS_newfstatat, folder, path, status, flags));
}

#define SOFTNIC_STAT(name, last) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, struct stat* status) noexcept) { \
    return choose(find_class_path(path, last), path, \
                  [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char* real) { \
                    const auto next = SOFTNIC_NEXT(name); \
                    const int flags = (last) == LastLink::kKeep ? AT_SYMLINK_NOFOLLOW : 0; \
                    return next != nullptr ? next(real, status) : kernels_stat(AT_FDCWD, real, status, flags); \
                  }); \
  }
SOFTNIC_STAT(stat, LastLink::kFollow)
SOFTNIC_STAT(stat64, LastLink::kFollow)
SOFTNIC_STAT(lstat, LastLink::kKeep)
SOFTNIC_STAT(lstat64, LastLink::kKeep)

// Programs of before glibc 2.33.
#define SOFTNIC_OLD_STAT(name, last) \
  SOFTNIC_STANDS_FOR(int, name, (int version, const char* path, struct stat* status) noexcept) { \
    return choose(find_class_path(path, last), path, \
                  [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char* real) { return SOFTNIC_NEXT(name)(version, real, status); }); \
  }
SOFTNIC_OLD_STAT(__xstat, LastLink::kFollow)
SOFTNIC_OLD_STAT(__xstat64, LastLink::kFollow)
SOFTNIC_OLD_STAT(__lxstat, LastLink::kKeep)
SOFTNIC_OLD_STAT(__lxstat64, LastLink::kKeep)

#define SOFTNIC_STAT_AT(name) \
  SOFTNIC_STANDS_FOR(int, name, (int folder, const char* path, struct stat* status, int flags) noexcept) { \
    return choose(find_class_path_at(folder, path, last_for_stat(flags)), path, \
                  [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char* real) { \
                    const auto next = SOFTNIC_NEXT(name); \
                    return next != nullptr ? next(folder, real, status, flags) \
                                           : kernels_stat(folder, real, status, flags); \
                  }); \
  }
SOFTNIC_STAT_AT(fstatat)
SOFTNIC_STAT_AT(fstatat64)

/// It is what its path describes.
#define SOFTNIC_FSTAT(name) \
  SOFTNIC_STANDS_FOR(int, name, (int fd, struct stat* status) noexcept) { \
    const std::string path = opened_path(fd); \
    const auto found = path.empty() ? std::nullopt : find_class_path(path.c_str()); \
    return choose(found, nullptr, [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char*) { \
                    const auto next = SOFTNIC_NEXT(name); \
                    return next != nullptr ? next(fd, status) : kernels_stat(fd, "", status, AT_EMPTY_PATH); \
                  }); \
  }
SOFTNIC_FSTAT(fstat)
SOFTNIC_FSTAT(fstat64)

// Before glibc 2.33.
#define SOFTNIC_OLD_FSTAT(name) \
  SOFTNIC_STANDS_FOR(int, name, (int version, int fd, struct stat* status) noexcept) { \
    const std::string path = opened_path(fd); \
    const auto found = path.empty() ? std::nullopt : find_class_path(path.c_str()); \
    return choose(found, nullptr, [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char*) { return SOFTNIC_NEXT(name)(version, fd, status); }); \
  }
SOFTNIC_OLD_FSTAT(__fxstat)
SOFTNIC_OLD_FSTAT(__fxstat64)

#define SOFTNIC_OLD_STAT_AT(name) \
  SOFTNIC_STANDS_FOR(int, name, \
                     (int version, int folder, const char* path, struct stat* status, int flags) noexcept) { \
    return choose(find_class_path_at(folder, path, last_for_stat(flags)), path, \
                  [&](const ClassPath& it) { return describe_entry(*it.entry, status); }, \
                  [&](const char* real) { return SOFTNIC_NEXT(name)(version, folder, real, status, flags); }); \
  }
SOFTNIC_OLD_STAT_AT(__fxstatat)
SOFTNIC_OLD_STAT_AT(__fxstatat64)

SOFTNIC_STANDS_FOR(int, statx,
                   (int folder, const char* path, int flags, unsigned mask, struct statx* status) noexcept) {
  const bool itself = path != nullptr && path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0 && is_cm_file(folder);
  const auto found = itself ? find_class_path(opened_path(folder).c_str())
                            : find_class_path_at(folder, path, last_for_stat(flags));
  return choose(found, path, [&](const ClassPath& it) { return describe_entry_ex(*it.entry, status); },
                [&](const char* real) { return SOFTNIC_NEXT(statx)(folder, real, flags, mask, status); });
}

}  // extern "C"
// NOLINTEND(clang-diagnostic-reserved-identifier)
