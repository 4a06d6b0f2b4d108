#pragma once

#include <cstdint>

namespace gdrperf::softnic {

/// Whole pages [begin, end); empty when begin == end.
struct PageRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool empty() const noexcept { return begin == end; }
  std::uint64_t bytes() const noexcept { return end - begin; }
};

}  // namespace gdrperf::softnic
