#include "app/output/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

ScratchFolder::ScratchFolder() {
  path_ = (std::filesystem::temp_directory_path() / "gdrperf-scratch.XXXXXX").string();
  if (!::mkdtemp(path_.data())) throw call_error("mkdtemp", errno, path_, "set TMPDIR to a writable folder");
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace gdrperf::app
