#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topo/readers/captured_text.h"

namespace gdrperf::topo {

constexpr std::size_t kMaxDevices = 2048;

/// Index of each affinity column, in the order in which drivers print them.
enum Affinity { kCpu, kNuma, kGpuNuma, kAffinities };

/// The line above the matrix.
struct Header {
  std::size_t line = 0;
  std::vector<std::string> labels;  ///< of the device columns
  std::unordered_map<std::string, std::size_t> by_label;
  std::array<bool, kAffinities> has{};
  std::vector<std::size_t> affinity_at;  ///< where those columns start, tabs expanded

  std::size_t devices() const { return labels.size(); }
  std::size_t affinities() const { return affinity_at.size(); }
  /// Column with that label.
  std::optional<std::size_t> column(std::string_view label) const;
};

struct HeaderSearch {
  std::optional<std::size_t> header;  ///< line of the first matrix
  std::optional<std::size_t> p2p;     ///< line of a `topo -p2p` table in front of it
};
HeaderSearch find_header(const CapturedText& text);

/// The output of grep, a quotation, a comment: where the same text stands in
/// front of the header and of the row below it, makes that the text's prefix
/// and returns true.
bool adopt_prefix(CapturedText& text);

/// Throws usage_error.
Header parse_header(const CapturedText& text, std::size_t line);

}  // namespace gdrperf::topo
