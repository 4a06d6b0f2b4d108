#pragma once

#include <cstddef>
#include <string>

namespace gdrperf {

/// The whole file as bytes ("-" is standard input). Throws usage_error naming
/// the path when it cannot be read or is larger than `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes);

/// The first line of a small (sysfs, proc) file without its newline; empty
/// when it cannot be read.
std::string read_line_or_empty(const std::string& path);

/// Replaces `path` by `content` through a file beside it, fsync and rename: readers
/// see the old or the new file, never a part. That file has no name while it is
/// written (O_TMPFILE), so a killed process leaves nothing behind; where the file
/// system has no such files it is `path`.XXXXXX. Throws Error(kEnvironment) naming the
/// path and the cause (disk full, no access), with nothing left beside it.
void write_file_atomic(const std::string& path, const std::string& content);

}  // namespace gdrperf
