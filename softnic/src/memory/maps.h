#pragma once

#include <cstdint>

#include "memory/page_range.h"

namespace gdrperf::softnic {

/// One line of /proc/self/maps.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  char path[64] = {};  ///< cut to this length
};

/// Calls `visit(mapping, argument)` for every mapping that overlaps `range`,
/// in order of address, until it returns false. False when the file could not
/// be read. Allocates nothing.
bool visit_mappings(PageRange range, bool (*visit)(const Mapping&, void*), void* argument);

}  // namespace gdrperf::softnic
