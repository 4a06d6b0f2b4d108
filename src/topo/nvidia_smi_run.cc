#include "gdrperf/topo/nvidia_smi.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include <fmt/format.h>

#include "captured_text.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf::topo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kCommand = "nvidia-smi topo -m";

/// A child process in a group of its own; killed and reaped on destruction.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    wait(0);
  }

  /// Its wait status, or nothing when it still runs.
  std::optional<int> wait(int flags) {
    int status = 0;
    pid_t got = 0;
    do got = ::waitpid(pid_, &status, flags);
    while (got < 0 && errno == EINTR);
    if (got == 0) return std::nullopt;
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

/// Starts nvidia-smi with both outputs on `output`; nothing when there is none.
std::optional<pid_t> start(int output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  char program[] = "nvidia-smi";
  char topo[] = "topo";
  char matrix[] = "-m";
  char* const arguments[] = {program, topo, matrix, nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, program, &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  // EACCES: nothing there, and a folder of the PATH that may not be searched.
  if (error == ENOENT || error == ENOTDIR || error == EACCES) return std::nullopt;
  if (error != 0) throw call_error(kCommand, error);
  return pid;
}

milliseconds left_until(steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return left < milliseconds(0) ? milliseconds(0) : left;
}

std::string first_line(std::string_view text) {
  const std::string_view line = trimmed(text.substr(0, text.find('\n')));
  return std::string(line.substr(0, 200));
}

Error too_slow(milliseconds timeout) {
  return Error(ExitCode::kEnvironment,
               fmt::format("{} did not end within {} s", kCommand,
                           std::chrono::duration<double>(timeout).count()),
               "see whether nvidia-smi works by itself (a hanging driver needs a look at dmesg)");
}

std::string read_all(int fd, steady_clock::time_point deadline, milliseconds timeout) {
  constexpr std::size_t kMost = 4u << 20;
  std::string text;
  std::array<char, 16384> block;
  while (true) {
    pollfd ready = {fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left_until(deadline).count()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw call_error("poll", errno);
    if (count == 0) throw too_slow(timeout);
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw call_error("read", errno);
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMost) {
      throw Error(ExitCode::kEnvironment,
                  fmt::format("{} printed more than {} bytes", kCommand, kMost));
    }
  }
}

}  // namespace

std::optional<std::string> run_nvidia_smi(milliseconds timeout) {
  const steady_clock::time_point deadline = steady_clock::now() + timeout;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw call_error("pipe2", errno);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::optional<pid_t> pid = start(writing.get());
  writing.reset();
  if (!pid) return std::nullopt;
  Child child(*pid);
  std::string text = read_all(reading.get(), deadline, timeout);
  std::optional<int> status;
  while (!(status = child.wait(WNOHANG))) {
    if (steady_clock::now() >= deadline) throw too_slow(timeout);
    // It has closed its output and is about to exit.
    std::this_thread::sleep_for(milliseconds(2));
  }
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return text;
  const std::string how = WIFEXITED(*status) ? fmt::format("exit status {}", WEXITSTATUS(*status))
                                             : fmt::format("signal {}", WTERMSIG(*status));
  throw Error(ExitCode::kEnvironment,
              fmt::format("{} failed ({}): {}", kCommand, how, first_line(text)),
              "see whether nvidia-smi works by itself, or give a capture with --nvidia-smi FILE");
}

}  // namespace gdrperf::topo
