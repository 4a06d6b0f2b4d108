#include "gdrperf/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf {

std::string read_file(const std::string& path, std::size_t max_bytes) {
  const UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw usage_error(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  std::string content;
  char block[65536];
  while (true) {
    const ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw usage_error(fmt::format("{}: {}", path, std::generic_category().message(errno)));
    if (got == 0) return content;
    content.append(block, static_cast<std::size_t>(got));
    if (content.size() > max_bytes) {
      throw usage_error(fmt::format("{}: larger than {} bytes", path, max_bytes));
    }
  }
}

std::string read_line_or_empty(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

namespace {

Error cannot_write(const std::string& path, const char* call, int error) {
  const std::string limit = limit_hint(error);
  return Error(ExitCode::kEnvironment,
               fmt::format("cannot write {}: {}: {}", path, call, std::generic_category().message(error)),
               limit.empty() ? "free space or choose another path" : limit);
}

void fill(int fd, const std::string& path, const std::string& content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = ::write(fd, content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw cannot_write(path, "write", errno);
    done += static_cast<std::size_t>(put);
  }
  // It was made 0600; a result is an ordinary file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd, 0666 & ~mask) != 0) throw cannot_write(path, "fchmod", errno);
  if (::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) throw cannot_write(path, "fsync", errno);
}

bool same_file(int fd, const std::string& path) {
  struct stat one = {};
  struct stat other = {};
  return ::fstat(fd, &one) == 0 && ::stat(path.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

/// Through a file without a name, which nobody has to clear away when this process is
/// killed. It gets one for as long as a rename takes, always the same: what a kill just
/// then leaves behind, the next writer takes away. False where the file system cannot.
bool write_unnamed(const std::string& path, const std::string& content) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd) return false;
  fill(fd.get(), path, content);
  const std::string whole = fmt::format("/proc/self/fd/{}", fd.get());
  const std::string part = path + ".part";
  constexpr int kWritersAtOnce = 32;
  for (int attempt = 0; attempt < kWritersAtOnce; ++attempt) {
    if (::linkat(AT_FDCWD, whole.c_str(), AT_FDCWD, part.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      if (::rename(part.c_str(), path.c_str()) == 0) return true;
      const int error = errno;
      if (error != ENOENT) {
        ::unlink(part.c_str());
        throw cannot_write(path, "rename", error);
      }
      // Another writer took the name away, or put our file where it belongs.
      if (same_file(fd.get(), path)) return true;
    } else if (errno != EEXIST || (::unlink(part.c_str()) != 0 && errno != ENOENT)) {
      return false;
    }
  }
  return false;
}

}  // namespace

void write_file_atomic(const std::string& path, const std::string& content) {
  if (write_unnamed(path, content)) return;
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) throw cannot_write(path, "create temporary file", errno);
  try {
    fill(fd.get(), path, content);
    if (::close(fd.release()) != 0) throw cannot_write(path, "close", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw cannot_write(path, "rename", errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace gdrperf
