#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gdrperf/topo/readers.h"

namespace gdrperf::topo {

/// A capture of at most `max_bytes` ("-": standard input), parsed; messages call
/// it by its path.
template <typename Parsed>
Parsed read_parsed(Parsed (*parse)(std::string_view text, std::string_view name), const std::string& path,
                   std::size_t max_bytes) {
  return parse(read_capture(path, max_bytes), path == "-" ? "standard input" : path);
}

}  // namespace gdrperf::topo
