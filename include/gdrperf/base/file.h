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

/// Writes `content` to a temporary file in the same folder, syncs it and renames it to `path`:
/// readers see the old file or the new one, never a part. The temporary file has no name
/// (O_TMPFILE), so a killed process leaves nothing behind; where the file system lacks
/// O_TMPFILE, its name is `path`, a dot and six random characters. Throws Error(kEnvironment) that names the path
/// and the cause (disk full, no access); the temporary file is removed then.
void write_file_atomic(const std::string& path, const std::string& content);

}  // namespace gdrperf
