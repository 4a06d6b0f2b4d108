#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace gdrperf {

/// An empty folder of a test's own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code none;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(none);
    std::string name = (none ? std::filesystem::path("/tmp") : parent) / "gdrperf-test.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      ADD_FAILURE() << "cannot make " << name;
    } else {
      path_ = name;
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Of a file or folder in it.
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace gdrperf
