#include "gdrperf/base/limits.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/units.h"

namespace gdrperf {
namespace {

constexpr rlim_t kLeastStack = 256 * 1024;  // buffers of 64 KiB, and what libraries need
constexpr rlim_t kEnoughFiles = 64;

rlim_t limit_of(int resource) {
  rlimit limit{};
  const bool known = ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
  return known ? limit.rlim_cur : RLIM_INFINITY;
}

std::string files_hint() {
  return fmt::format("this process may have {} open files: raise that with 'ulimit -n 1024'", limit_of(RLIMIT_NOFILE));
}

std::string space_hint() {
  return fmt::format("the address space of this process is limited to {}: raise that with 'ulimit -v unlimited'",
                     format_size(limit_of(RLIMIT_AS)));
}

std::string size_hint() {
  return fmt::format("files that this process writes are limited to {}, memory that it shares as well: raise that with "
                     "'ulimit -f unlimited'",
                     format_size(limit_of(RLIMIT_FSIZE)));
}

/// A few descriptors more cannot be had.
bool short_of_files() {
  const rlim_t limit = std::min<rlim_t>(limit_of(RLIMIT_NOFILE), 1024);
  rlim_t used = 0;
  for (rlim_t fd = 0; fd < limit; ++fd) used += ::fcntl(static_cast<int>(fd), F_GETFD) >= 0;
  return limit_of(RLIMIT_NOFILE) != RLIM_INFINITY && limit_of(RLIMIT_NOFILE) - used < kEnoughFiles;
}

}  // namespace

std::string limit_hint(int errno_value) {
  switch (errno_value) {
    case EMFILE: return files_hint();
    case ENFILE: return "the open files of the whole host are used up: raise sysctl fs.file-max, or close some";
    case EFBIG: return limit_of(RLIMIT_FSIZE) == RLIM_INFINITY ? std::string() : size_hint();
    case ENOMEM: return limit_of(RLIMIT_AS) == RLIM_INFINITY ? std::string() : space_hint();
    case EAGAIN:
      if (limit_of(RLIMIT_NPROC) == RLIM_INFINITY) return {};
      return fmt::format("this user may have {} processes and threads, a container fewer (pids.max): 'ulimit -u'",
                         limit_of(RLIMIT_NPROC));
    default: return {};
  }
}

std::string tight_limits() {
  std::string hints;
  const auto add = [&hints](const std::string& hint) { hints += (hints.empty() ? "" : "; ") + hint; };
  if (short_of_files()) add(files_hint());
  if (limit_of(RLIMIT_AS) != RLIM_INFINITY) add(space_hint());
  if (limit_of(RLIMIT_FSIZE) != RLIM_INFINITY) add(size_hint());
  return hints;
}

void require_stack() {
  const rlim_t limit = limit_of(RLIMIT_STACK);
  if (limit >= kLeastStack) return;
  throw Error(ExitCode::kEnvironment,
              fmt::format("the stack is limited to {}; this program needs {}", format_size(limit),
                          format_size(kLeastStack)),
              "raise it with 'ulimit -s 8192'");
}

}  // namespace gdrperf
