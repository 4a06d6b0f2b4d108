#pragma once

#include <string>
#include <utility>

#include "gdrperf/base/unique_fd.h"

namespace gdrperf::app {

/// The file `path` with this process's number, locked while it runs and removed when it ends.
class PidFile {
 public:
  /// "": none. Throws Error(kEnvironment) when another process holds it, or it cannot be written.
  explicit PidFile(std::string path);
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  ~PidFile();

 private:
  std::string path_;
  UniqueFd file_;
};

/// Appends to `path`, which is made where there is none. Throws Error(kEnvironment) naming `flag`.
UniqueFd open_log(const std::string& path, const char* flag);

/// Goes on in a process of its own, without terminal, while the one that was started waits until ready() is
/// called and then ends with 0, or ends with the other's status where that ends first. Before any thread starts.
class Background {
 public:
  /// Returns in the new process only. Throws Error(kEnvironment) where there can be none.
  static Background enter();
  /// Lets the first process end; its terminal is not written to any more.
  void ready();

 private:
  explicit Background(UniqueFd starter) : starter_(std::move(starter)) {}
  UniqueFd starter_;
};

}  // namespace gdrperf::app
