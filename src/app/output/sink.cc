#include "app/output/sink.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/unique_fd.h"
#include "app/process_setup.h"
#include "app/output/stream_write.h"

namespace gdrperf::app {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

bool in_proc(const std::string& folder) {
  struct statfs where {};
  return ::statfs(folder.c_str(), &where) == 0 && where.f_type == PROC_SUPER_MAGIC;
}

/// The file that `path` names after its symbolic links, there or not; nullopt where it is
/// a stream: no regular file, or a descriptor of a process by its name in /proc.
std::optional<std::string> file_behind(std::string path) {
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks; ++links) {
    if (in_proc(folder_of(path))) return std::nullopt;
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) return path;
    if (!S_ISLNK(found.st_mode)) return std::nullopt;
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return path;
    path = (target.is_absolute() ? target : fs::path(folder_of(path)) / target).string();
  }
  return path;
}

bool is_descriptor(const std::string& path, int fd) {
  struct stat one = {};
  struct stat other = {};
  return ::stat(path.c_str(), &one) == 0 && ::fstat(fd, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

Error cannot_write_to(const std::string& name) {
  const int error = errno;
  if (error == EINTR) {
    return Error(ExitCode::kEnvironment,
                 fmt::format("cannot write {}: a signal asked this program to end before anybody read", name),
                 "begin to read before the program ends, or choose a file");
  }
  const std::string limit = limit_hint(error);
  return Error(ExitCode::kEnvironment,
               fmt::format("cannot write {}: {}", name, std::generic_category().message(error)),
               limit.empty() ? "free space or choose another path" : limit);
}

void write_all(int fd, std::string_view content, const std::string& name) {
  if (write_stream(fd, content)) return;
  if (errno == EPIPE && fd == STDOUT_FILENO) {
    end_if_reader_gone();
    errno = EPIPE;
  }
  throw cannot_write_to(name);
}

}  // namespace

Sink::Sink(const std::string& path) : name_(path) {
  if (path.empty()) return;
  stdout_ = path == "-";
  if (!stdout_) file_ = file_behind(path);
  if (!stdout_ && !file_) stdout_ = is_descriptor(path, STDOUT_FILENO);
}

bool Sink::same_as(const Sink& other) const {
  if (!given() || !other.given()) return false;
  if (stdout_ || other.stdout_) return stdout_ == other.stdout_;
  const auto place = [](const Sink& sink) {
    std::error_code error;
    const std::string& path = sink.file_ ? *sink.file_ : sink.name_;
    const fs::path folder = fs::canonical(folder_of(path), error);
    return error ? fs::path(path) : folder / fs::path(path).filename();
  };
  return place(*this) == place(other);
}

void Sink::check(const char* flag) const {
  if (stdout_ && (::fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY) {
    // Closed, and something else in its place (occupy_standard_descriptors).
    throw Error(ExitCode::kEnvironment, "cannot write standard output: it is closed",
                fmt::format("leave it open, or give {} a file", flag));
  }
  if (!given() || is_stream()) return;
  std::error_code error;
  if (fs::is_directory(*file_, error)) {
    throw usage_error(fmt::format("{} {}: is a directory; give the name of a file", flag, name_));
  }
  const std::string folder = folder_of(*file_);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{} {}: cannot write in {}: {}", flag, name_, folder,
                            std::generic_category().message(errno)),
                "make the folder or choose another path");
  }
}

void Sink::write(const std::string& content) const {
  if (stdout_) {
    std::cout.flush();
    write_all(STDOUT_FILENO, content, "standard output");
  } else if (!file_) {
    const UniqueFd fd = open_stream(name_);
    if (!fd) throw cannot_write_to(name_);
    write_all(fd.get(), content, name_);
  } else {
    write_file_atomic(*file_, content);
  }
}

}  // namespace gdrperf::app
