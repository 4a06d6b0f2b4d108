#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/report/record.h"

namespace gdrperf::report {

/// A larger file is no output of a benchmark.
inline constexpr std::size_t kLargestImport = std::size_t{64} << 20;
inline constexpr std::size_t kMostImported = 50'000;  ///< runs of one file

/// What a person knows and the file does not say.
struct ImportHints {
  std::string relation;     ///< of runs in GPU memory: PIX, PXB, PHB, NODE or SYS
  std::string peer_device;  ///< "": as the end that printed
  std::string peer_buffer;  ///< the same
};

/// What was read of one file.
struct Imported {
  std::string format;                 ///< ImportFormat::name
  std::vector<RunRecord> runs;        ///< with `told`; at least one
  std::vector<std::string> warnings;  ///< what was left out, and where
};

/// Outputs of one program in one form.
struct ImportFormat {
  const char* name;
  const char* help;
  bool (*recognise)(std::string_view text);
  void (*read)(std::string_view text, const std::string& file, Imported& into);
};

/// All that can be read, in the order in which they are tried.
std::span<const ImportFormat> import_formats();

/// Reads `text`, the content of `file`. Throws usage_error("`file`:LINE: ...") for text that is no such output, or
/// is cut where nothing can be made of the rest. Time and memory are linear in the text.
Imported import_results(std::string_view text, const std::string& file, const ImportHints& hints);

}  // namespace gdrperf::report
