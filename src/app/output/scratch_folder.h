#pragma once

#include <string>

namespace gdrperf::app {

/// A folder of our own that goes when we do.
class ScratchFolder {
 public:
  /// Throws Error(kEnvironment).
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gdrperf::app
