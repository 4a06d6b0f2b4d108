#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "abi/verbs/class_paths.h"
#include "abi/libc/kernel_only.h"
#include "abi/libc/libc_functions.h"

/// Functions of libc that read folders. One of ours is a list of names: ours,
/// and those that the kernel has in the folder of that path.
namespace gdrperf::softnic {
namespace {

unsigned char type_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFolder: return DT_DIR;
    case EntryKind::kLink: return DT_LNK;
    case EntryKind::kDevice: return DT_CHR;
    case EntryKind::kFile: break;
  }
  return DT_REG;
}

struct Folder {
  int fd = -1;
  std::vector<dirent> entries;
  std::size_t next = 0;
  ~Folder() {
    if (fd >= 0) ::close(fd);
  }
  void add(const char* name, unsigned char type, std::uint64_t number) {
    dirent entry{};
    entry.d_ino = number;
    entry.d_off = static_cast<off_t>(entries.size()) + 1;
    entry.d_reclen = sizeof entry;
    entry.d_type = type;
    std::snprintf(entry.d_name, sizeof entry.d_name, "%s", name);
    entries.push_back(entry);
  }
  dirent* read() { return next < entries.size() ? &entries[next++] : nullptr; }
};

/// Folders that a program has open. DIR is opaque: its pointers are ours.
struct Folders {
  std::mutex mutex;
  std::map<DIR*, std::unique_ptr<Folder>> open;
};
Folders& folders() {
  static auto* const all = new Folders();
  return *all;
}
std::atomic<int> g_open_folders{0};

void add_names_of_kernel(Folder& folder, const std::string& path, const std::set<std::string>& ours) {
  const KernelOnly aside;
  DIR* real = ::opendir(path.c_str());
  if (real == nullptr) return;
  while (const dirent* it = ::readdir(real)) {
    if (std::strcmp(it->d_name, ".") == 0 || std::strcmp(it->d_name, "..") == 0 || ours.contains(it->d_name)) continue;
    folder.add(it->d_name, it->d_type, it->d_ino);
  }
  ::closedir(real);
}

/// Owns `fd` from then on.
DIR* new_folder(int fd, const ClassPath& path) {
  auto folder = std::make_unique<Folder>();
  folder->fd = fd;
  folder->add(".", DT_DIR, path.entry->number);
  folder->add("..", DT_DIR, path.entry->number + 1);
  std::set<std::string> ours;
  for (const ClassName& it : class_names(path.path)) {
    ours.insert(it.name);
    folder->add(it.name.c_str(), type_of(it.kind), std::hash<std::string>()(path.path + "/" + it.name));
  }
  add_names_of_kernel(*folder, path.path, ours);
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

std::optional<ClassPath> find_folder(const char* path) {
  auto found = find_class_path(path);
  if (!found || !found->entry) return std::nullopt;
  return found;
}

DIR* open_folder_at(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? nullptr : ::fdopendir(fd);
}

/// glob of libc reads folders by functions that it is given.
int glob_ours(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found,
              int (*real)(const char*, int, int (*)(const char*, int), glob_t*)) {
  found->gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  found->gl_readdir = [](void* folder) { return ::readdir(static_cast<DIR*>(folder)); };
  found->gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
  found->gl_stat = [](const char* path, struct stat* status) { return ::stat(path, status); };
  found->gl_lstat = [](const char* path, struct stat* status) { return ::lstat(path, status); };
  const int result = real(pattern, flags | GLOB_ALTDIRFUNC, on_error, found);
  found->gl_flags &= ~GLOB_ALTDIRFUNC;
  return result;
}

using Select = int (*)(const dirent*);
using Compare = int (*)(const dirent**, const dirent**);

int scan(DIR* folder, dirent*** names, Select select, Compare compare) {
  std::vector<dirent*> kept;
  while (const dirent* it = ::readdir(folder)) {
    if (select != nullptr && select(it) == 0) continue;
    auto* copy = static_cast<dirent*>(std::malloc(sizeof *it));
    *copy = *it;
    kept.push_back(copy);
  }
  ::closedir(folder);
  // The caller frees it; an array of pointers.
  constexpr std::size_t kEach = sizeof(void*);
  *names = static_cast<dirent**>(std::malloc((kept.size() + 1) * kEach));
  std::copy(kept.begin(), kept.end(), *names);
  if (compare != nullptr) {
    std::qsort(*names, kept.size(), kEach, reinterpret_cast<int (*)(const void*, const void*)>(compare));
  }
  return static_cast<int>(kept.size());
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {

SOFTNIC_STANDS_FOR(DIR*, opendir, (const char* path)) {
  return find_folder(path) ? open_folder_at(path) : SOFTNIC_NEXT(opendir)(path);
}
SOFTNIC_STANDS_FOR(DIR*, fdopendir, (int fd)) {
  const std::string path = remembered_folder(fd);
  const auto found = path.empty() ? std::nullopt : find_folder(path.c_str());
  return found ? new_folder(fd, *found) : SOFTNIC_NEXT(fdopendir)(fd);
}
static_assert(sizeof(struct dirent) == sizeof(struct dirent64));
#define SOFTNIC_READDIR(name) \
  SOFTNIC_STANDS_FOR(dirent*, name, (DIR * handle)) { \
    Folder* folder = folder_of(handle); \
    return folder != nullptr ? folder->read() : SOFTNIC_NEXT(name)(handle); \
  }
SOFTNIC_READDIR(readdir)
SOFTNIC_READDIR(readdir64)

SOFTNIC_STANDS_FOR(void, rewinddir, (DIR * handle) noexcept) {
  if (Folder* folder = folder_of(handle)) {
    folder->next = 0;
  } else {
    SOFTNIC_NEXT(rewinddir)(handle);
  }
}
SOFTNIC_STANDS_FOR(long, telldir, (DIR * handle) noexcept) {
  const Folder* folder = folder_of(handle);
  return folder != nullptr ? static_cast<long>(folder->next) : SOFTNIC_NEXT(telldir)(handle);
}
SOFTNIC_STANDS_FOR(void, seekdir, (DIR * handle, long place) noexcept) {
  if (Folder* folder = folder_of(handle)) {
    folder->next = static_cast<std::size_t>(place);
  } else {
    SOFTNIC_NEXT(seekdir)(handle, place);
  }
}
SOFTNIC_STANDS_FOR(int, dirfd, (DIR * handle) noexcept) {
  const Folder* folder = folder_of(handle);
  return folder != nullptr ? folder->fd : SOFTNIC_NEXT(dirfd)(handle);
}
SOFTNIC_STANDS_FOR(int, closedir, (DIR * handle)) {
  if (folder_of(handle) == nullptr) return SOFTNIC_NEXT(closedir)(handle);
  Folders& all = folders();
  const std::lock_guard guard(all.mutex);
  all.open.erase(handle);
  --g_open_folders;
  return 0;
}

#define SOFTNIC_SCANDIR(name) \
  SOFTNIC_STANDS_FOR(int, name, (const char* path, dirent*** names, Select select, Compare compare)) { \
    if (!find_folder(path)) return SOFTNIC_NEXT(name)(path, names, select, compare); \
    DIR* folder = ::opendir(path); \
    return folder == nullptr ? -1 : scan(folder, names, select, compare); \
  }
SOFTNIC_SCANDIR(scandir)
SOFTNIC_SCANDIR(scandir64)

#define SOFTNIC_GLOB(name)                                                                                            \
  SOFTNIC_STANDS_FOR(int, name, (const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found)) { \
    if (!may_be_class_path(pattern) || (flags & GLOB_ALTDIRFUNC) != 0)                                                \
      return SOFTNIC_NEXT(name)(pattern, flags, on_error, found);                                                     \
    return glob_ours(pattern, flags, on_error, found, SOFTNIC_NEXT(name));                                            \
  }
SOFTNIC_GLOB(glob)
SOFTNIC_GLOB(glob64)

// Copies of a descriptor lead to the same folder (find's).
#define SOFTNIC_FCNTL(name) \
  SOFTNIC_STANDS_FOR(int, name, (int fd, int command, ...)) { \
    va_list arguments; \
    va_start(arguments, command); \
    void* argument = va_arg(arguments, void*); \
    va_end(arguments); \
    const int result = SOFTNIC_NEXT(name)(fd, command, argument); \
    if (result < 0 || (command != F_DUPFD && command != F_DUPFD_CLOEXEC)) return result; \
    if (const std::string path = remembered_folder(fd); !path.empty()) remember_folder(result, path); \
    return result; \
  }
SOFTNIC_FCNTL(fcntl)
SOFTNIC_FCNTL(fcntl64)

}  // extern "C"
