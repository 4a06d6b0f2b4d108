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

void write_file_atomic(const std::string& path, const std::string& content) {
  std::string temporary = path + ".XXXXXX";
  const auto failed = [&](const char* call, int error) {
    const std::string limit = limit_hint(error);
    return Error(ExitCode::kEnvironment,
                 fmt::format("cannot write {}: {}: {}", path, call, std::generic_category().message(error)),
                 limit.empty() ? "free space or choose another path" : limit);
  };
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) throw failed("create temporary file", errno);
  const auto abandon = [&](const char* call, int error) {
    ::unlink(temporary.c_str());
    return failed(call, error);
  };
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = ::write(fd.get(), content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw abandon("write", errno);
    done += static_cast<std::size_t>(put);
  }
  // mkostemp makes it 0600; a result is an ordinary file.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0) throw abandon("fchmod", errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EROFS) throw abandon("fsync", errno);
  if (::close(fd.release()) != 0) throw abandon("close", errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw abandon("rename", errno);
}

}  // namespace gdrperf
