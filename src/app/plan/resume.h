#pragma once

#include <string>
#include <vector>

namespace gdrperf::app {

inline constexpr char kResumeFlag[] = "--resume";

/// The file of `gdrperf sweep --resume FILE`; "" for any other command line. Throws usage_error where other options
/// stand beside it: FILE's document has them.
std::string resumed_file(const std::vector<std::string>& argv);

/// The command line that made the document `file`, for this program, and `--resume FILE` at its end; --json goes to
/// FILE. Throws usage_error where `file` is no sweep's document that misses runs, or of another host or version.
std::vector<std::string> resumed_command_line(const std::string& program, const std::string& file);

}  // namespace gdrperf::app
