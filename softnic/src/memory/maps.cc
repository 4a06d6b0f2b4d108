#include "memory/maps.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::softnic {
namespace {

bool parse_line(const char* line, Mapping& mapping) {
  unsigned long long begin, end, offset, inode;
  char rights[8];
  int path_at = 0;
  if (std::sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &begin, &end, rights, &offset, &inode,
                  &path_at) < 5) {
    return false;
  }
  mapping.begin = begin;
  mapping.end = end;
  mapping.offset = offset;
  mapping.inode = inode;
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.executable = rights[2] == 'x';
  mapping.shared = rights[3] == 's';
  std::snprintf(mapping.path, sizeof mapping.path, "%s", path_at > 0 ? line + path_at : "");
  return true;
}

}  // namespace

bool visit_mappings(PageRange range, bool (*visit)(const Mapping&, void*), void* argument) {
  // Not open(), which the library stands in front of, and which allocates.
  const UniqueFd file(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)));
  if (!file) return false;
  // Paths may be long; what matters stands at the start of a line.
  char buffer[8192];
  std::size_t held = 0;
  bool skipping = false;  // inside a line that did not fit
  while (true) {
    const ssize_t got = ::read(file.get(), buffer + held, sizeof buffer - 1 - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    held += static_cast<std::size_t>(got);
    std::size_t used = 0;
    while (auto* newline = static_cast<char*>(std::memchr(buffer + used, '\n', held - used))) {
      *newline = '\0';
      Mapping mapping;
      const bool whole = !skipping;
      skipping = false;
      if (whole && parse_line(buffer + used, mapping) && mapping.end > range.begin) {
        if (mapping.begin >= range.end || !visit(mapping, argument)) return true;
      }
      used = static_cast<std::size_t>(newline - buffer) + 1;
    }
    std::memmove(buffer, buffer + used, held - used);
    held -= used;
    if (got == 0) return true;
    if (held == sizeof buffer - 1) {
      held = 0;
      skipping = true;
    }
  }
}

}  // namespace gdrperf::softnic
