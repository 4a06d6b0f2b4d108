#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gdrperf::app {

struct DoctorOptions {
  std::vector<std::string> captures;
  std::string root;
  std::string words;  ///< file of further known messages
  std::string record;
  std::vector<std::string> only;
  std::string host;  ///< a running server: both ends
  int port = 0;
  std::string token;
  std::string device;
  std::string peer_device;
  bool unmasked = false;
  bool list = false;
  bool list_words = false;
  bool verbose = false;
  bool fix_script = false;
  std::string json;  ///< file, "-" for standard output, "" for none
  bool probe_gpus = false;
};

/// Runs the checks, here, on a recording or on captured text, and prints them;
/// the exit code: 1 when a check failed, 3 when there was nothing to check.
/// Throws Error(kUsage) for a file that cannot be read.
int run_doctor(const DoctorOptions& options, std::ostream& out);

}  // namespace gdrperf::app
