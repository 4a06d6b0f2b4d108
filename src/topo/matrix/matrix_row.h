#pragma once

#include <string_view>
#include <vector>

#include "topo/readers/captured_text.h"
#include "topo/matrix/matrix_header.h"

namespace gdrperf::topo {

/// One row of the matrix, taken apart; the views are into the text.
struct Row {
  std::vector<std::string_view> cells;       ///< one for each device column, or fewer
  std::vector<std::string_view> affinities;  ///< kAffinities, "" where empty
};

/// Takes the row `line` apart, which starts with `label`. Throws usage_error
/// when what follows the device columns does not fit the affinity columns; the
/// cells of the device columns are the caller's to check.
Row split_row(const CapturedText& text, const Header& header, std::size_t line,
              std::string_view label);

}  // namespace gdrperf::topo
