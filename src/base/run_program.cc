#include "gdrperf/base/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <thread>

#include "gdrperf/base/error.h"
#include "gdrperf/base/spawn.h"
#include "gdrperf/base/unique_fd.h"

namespace gdrperf {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using End = ProgramResult::End;

/// The file of a program; "" when there is none.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  // lspci may be in sbin, not always on PATH.
  std::string folders = std::string(path == nullptr ? "/usr/bin:/bin" : path) + ":/usr/sbin:/sbin";
  std::replace(folders.begin(), folders.end(), ':', '\n');
  std::size_t at = 0;
  while (at < folders.size()) {
    const std::size_t end = std::min(folders.find('\n', at), folders.size());
    const std::string file = folders.substr(at, end - at) + "/" + name;
    if (end > at && ::access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return {};
}

/// Ours, without what was preloaded into us, and with untranslated messages.
std::vector<std::string> child_environment() {
  std::vector<std::string> variables = own_environment();
  std::erase_if(variables,
                [](const std::string& each) { return each.starts_with("LD_PRELOAD=") || each.starts_with("LC_ALL="); });
  variables.emplace_back("LC_ALL=C");
  return variables;
}

/// The child in a process group of its own; -1 when it did not start.
pid_t start(const std::string& file, const std::vector<std::string>& argv, int output) {
  try {
    return spawn({.file = file, .argv = argv, .environment = child_environment(), .empty_input = true, .output = output,
                  .errors = output, .own_group = true});
  } catch (const Error&) {  // reads as not installed
    return -1;
  }
}

/// Reads to the end. False when the deadline came first, or too much came.
bool read_until(int fd, steady_clock::time_point deadline, std::string& output) {
  std::array<char, 65536> block;
  while (output.size() < kMostProgramOutput) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left <= milliseconds(0)) return false;
    pollfd ready = {fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    output.append(block.data(), static_cast<std::size_t>(got));
  }
  return false;
}

/// Waits for the child; nothing when the deadline came first.
std::optional<int> wait_until(pid_t pid, steady_clock::time_point deadline) {
  int status = 0;
  while (true) {
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) return status;
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (steady_clock::now() >= deadline) return std::nullopt;
    // It has closed its output and is about to exit.
    std::this_thread::sleep_for(milliseconds(1));
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& argv, milliseconds timeout) {
  const steady_clock::time_point deadline = steady_clock::now() + timeout;
  ProgramResult result;
  const std::string file = find_program(argv.front());
  int ends[2];
  if (file.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return result;
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t pid = start(file, argv, writing.get());
  writing.reset();
  if (pid < 0) return result;
  const bool finished = read_until(reading.get(), deadline, result.output);
  const std::optional<int> status = finished ? wait_until(pid, deadline) : std::nullopt;
  if (!status) {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    result.end = End::kTimedOut;
  } else if (WIFEXITED(*status)) {
    result.end = End::kExited;
    result.status = WEXITSTATUS(*status);
  } else {
    result.end = End::kSignalled;
    result.status = WTERMSIG(*status);
  }
  return result;
}

}  // namespace gdrperf
