#include "shared/sync/limited.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace gdrperf::softnic {
namespace {

/// False: unlimited.
bool limit_of(__rlimit_resource_t resource, std::uint64_t& limit) {
  rlimit found{};
  if (::getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return false;
  limit = found.rlim_cur;
  return true;
}

std::string line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "?" : line;
}

std::string cause(int error) {
  std::uint64_t limit = 0;
  switch (error) {
    case EMFILE:
      limit_of(RLIMIT_NOFILE, limit);
      return fmt::format("this process may have {} descriptors: raise ulimit -n", limit);
    case ENFILE:
      return fmt::format("this machine may have {} open files: raise sysctl fs.file-max",
                         line_of("/proc/sys/fs/file-max"));
    case ENOMEM:
      if (!limit_of(RLIMIT_AS, limit)) return "no memory, or a limit of the container's";
      return fmt::format(
          "the address space is limited to {} MiB: raise ulimit -v, a device takes 10 GiB of it and 8 GiB "
          "for each peer, and uses little of that",
          limit >> 20);
    case EFBIG:
      limit_of(RLIMIT_FSIZE, limit);
      return fmt::format("files are limited to {} KiB: raise ulimit -f, memory that is shared counts as a file",
                         limit >> 10);
    case EAGAIN:
      return limit_of(RLIMIT_NPROC, limit) ? fmt::format("a user may have {} threads: raise ulimit -u", limit) : "";
    case EPERM:
    case EACCES:
    case ENOSYS:
      return "the kernel refuses it: look at seccomp and, for memfd_create, sysctl vm.memfd_noexec";
    default:
      return "";
  }
}

}  // namespace

std::string limited(std::string_view call, int error) {
  const std::string why = cause(error);
  return fmt::format("{}: {}{}{}{}", call, std::strerror(error), why.empty() ? "" : " (", why, why.empty() ? "" : ")");
}

void say(const std::string& text) { std::fprintf(stderr, "softnic: %s\n", text.c_str()); }

}  // namespace gdrperf::softnic
