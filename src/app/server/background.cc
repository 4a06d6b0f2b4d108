#include "app/server/background.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::app {
namespace {

Error cannot(const std::string& what, int error) {
  return Error(ExitCode::kEnvironment, fmt::format("{}: {}", what, std::strerror(error)));
}

[[noreturn]] void stand_by(pid_t child, int started) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(started, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) ::_exit(0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::kEnvironment));
}

/// The number in the file, or "" where it is empty. Throws usage_error for a file that holds something else: it is
/// nobody's pidfile, and would be overwritten and removed.
std::string content_of_pidfile(int fd, const std::string& path) {
  constexpr std::size_t kLongest = 16;
  struct stat found = {};
  std::array<char, kLongest + 1> text{};
  const bool regular = ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
  const ssize_t got = regular ? ::pread(fd, text.data(), text.size(), 0) : 0;
  std::string content(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (content.ends_with('\n')) content.pop_back();
  if (regular && got >= 0 && content.size() < kLongest && content.find_first_not_of("0123456789") == std::string::npos)
    return content;
  throw usage_error(
      fmt::format("--pidfile {}: {}", path, regular ? "holds something else than a process ID" : "is no regular file"),
      "name a new file, or one that holds a process ID");
}

}  // namespace

PidFile::PidFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  // Not through a symbolic link, and no waiting for the reader of a pipe.
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (!file_ && errno == ELOOP) {
    throw usage_error(fmt::format("--pidfile {}: is a symbolic link, whose target would be overwritten", path_),
                      "name a new file");
  }
  if (!file_) throw cannot("--pidfile " + path_, errno);
  const std::string before = content_of_pidfile(file_.get(), path_);
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error(ExitCode::kEnvironment, fmt::format("--pidfile {}: process {} runs with it already", path_, before));
  }
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw cannot("--pidfile " + path_, errno);
  }
}

PidFile::~PidFile() {
  // Another file that got the name meanwhile is not this process's.
  struct stat own = {};
  struct stat named = {};
  if (!file_ || ::fstat(file_.get(), &own) != 0 || ::lstat(path_.c_str(), &named) != 0) return;
  if (own.st_dev == named.st_dev && own.st_ino == named.st_ino) ::unlink(path_.c_str());
}

UniqueFd open_log(const std::string& path, const char* flag) {
  UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) throw cannot(fmt::format("{} {}", flag, path), errno);
  return log;
}

Background Background::enter() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw cannot("--daemon: pipe", errno);
  UniqueFd starter(ends[1]);
  const UniqueFd started(ends[0]);
  const pid_t child = ::fork();
  if (child < 0) throw cannot("--daemon: fork", errno);
  if (child > 0) {
    starter.reset();
    stand_by(child, started.get());
  }
  ::setsid();
  return Background(std::move(starter));
}

void Background::ready() {
  const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nowhere) ::dup2(nowhere.get(), standard);
  }
  const char byte = 1;
  if (::write(starter_.get(), &byte, 1) < 0) return;  // it has gone: nobody waits
  starter_.reset();
}

}  // namespace gdrperf::app
