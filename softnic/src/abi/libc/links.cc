#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "abi/verbs/class_paths.h"
#include "abi/libc/libc_functions.h"

/// Functions of libc that read links and resolve paths, and those by which `ls -l`
/// asks for what our files have none of.
namespace gdrperf::softnic {
namespace {

/// -2: no link of ours.
ssize_t read_link(const std::optional<ClassPath>& found, char* target, std::size_t size) {
  if (!found || !found->entry) return -2;
  if (found->entry->kind != EntryKind::kLink) {
    errno = EINVAL;
    return -1;
  }
  const std::size_t length = std::min(size, found->entry->text.size());
  // No zero at its end, as the kernel's.
  std::copy_n(found->entry->text.data(), length, target);
  return static_cast<ssize_t>(length);
}

char* copy_path(const std::string& path, char* to) {
  if (path.size() >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return nullptr;
  }
  if (to == nullptr) return ::strdup(path.c_str());
  return std::strcpy(to, path.c_str());
}

/// Has no extended attribute.
bool is_bare(const char* path, LastLink last) {
  const auto found = find_class_path(path, last);
  return found && found->entry;
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

// NOLINTBEGIN(clang-diagnostic-reserved-identifier): glibc's fortified calls begin with two underscores
extern "C" {

SOFTNIC_STANDS_FOR(ssize_t, readlink, (const char* path, char* target, std::size_t size) noexcept) {
  const auto found = find_class_path(path, LastLink::kKeep);
  const ssize_t ours = read_link(found, target, size);
  return ours != -2 ? ours : SOFTNIC_NEXT(readlink)(found ? found->path.c_str() : path, target, size);
}
SOFTNIC_STANDS_FOR(ssize_t, readlinkat, (int folder, const char* path, char* target, std::size_t size) noexcept) {
  const auto found = find_class_path_at(folder, path, LastLink::kKeep);
  const ssize_t ours = read_link(found, target, size);
  return ours != -2 ? ours : SOFTNIC_NEXT(readlinkat)(folder, found ? found->path.c_str() : path, target, size);
}
SOFTNIC_STANDS_FOR(ssize_t, __readlink_chk, (const char* path, char* target, std::size_t size, std::size_t room)) {
  const auto found = find_class_path(path, LastLink::kKeep);
  const ssize_t ours = read_link(found, target, std::min(size, room));
  return ours != -2 ? ours : SOFTNIC_NEXT(__readlink_chk)(found ? found->path.c_str() : path, target, size, room);
}
SOFTNIC_STANDS_FOR(ssize_t, __readlinkat_chk,
                   (int folder, const char* path, char* target, std::size_t size, std::size_t room)) {
  const auto found = find_class_path_at(folder, path, LastLink::kKeep);
  const ssize_t ours = read_link(found, target, std::min(size, room));
  return ours != -2 ? ours
                    : SOFTNIC_NEXT(__readlinkat_chk)(folder, found ? found->path.c_str() : path, target, size, room);
}

SOFTNIC_STANDS_FOR(char*, realpath, (const char* path, char* to) noexcept) {
  const auto found = find_class_path(path);
  if (found && found->entry) return copy_path(found->path, to);
  return SOFTNIC_NEXT(realpath)(found ? found->path.c_str() : path, to);
}
SOFTNIC_STANDS_FOR(char*, __realpath_chk, (const char* path, char* to, std::size_t room)) {
  const auto found = find_class_path(path);
  if (found && found->entry && found->path.size() < room) return copy_path(found->path, to);
  return SOFTNIC_NEXT(__realpath_chk)(found ? found->path.c_str() : path, to, room);
}
SOFTNIC_STANDS_FOR(char*, canonicalize_file_name, (const char* path) noexcept) { return ::realpath(path, nullptr); }

#define SOFTNIC_GET_ATTRIBUTE(function, last)                                                        \
  SOFTNIC_STANDS_FOR(ssize_t, function,                                                              \
                     (const char* path, const char* name, void* value, std::size_t size) noexcept) { \
    if (!is_bare(path, last)) return SOFTNIC_NEXT(function)(path, name, value, size);                \
    errno = ENODATA;                                                                                 \
    return -1;                                                                                       \
  }
SOFTNIC_GET_ATTRIBUTE(getxattr, LastLink::kFollow)
SOFTNIC_GET_ATTRIBUTE(lgetxattr, LastLink::kKeep)

#define SOFTNIC_LIST_ATTRIBUTES(function, last) \
  SOFTNIC_STANDS_FOR(ssize_t, function, (const char* path, char* names, std::size_t size) noexcept) { \
    return is_bare(path, last) ? 0 : SOFTNIC_NEXT(function)(path, names, size); \
  }
SOFTNIC_LIST_ATTRIBUTES(listxattr, LastLink::kFollow)
SOFTNIC_LIST_ATTRIBUTES(llistxattr, LastLink::kKeep)

}  // extern "C"
// NOLINTEND(clang-diagnostic-reserved-identifier)
