#pragma once

#include <string_view>
#include <vector>

#include "topo/readers/captured_text.h"
#include "topo/matrix/matrix_header.h"

namespace gdrperf::topo {

/// Names of the device columns from the entries "NIC0: mlx5_0" after line
/// `from`, "" for columns without one: below the heading "NIC Legend:"; where
/// the heading is gone, those that come before any text that is not part of the
/// legends. Throws usage_error when there is a legend and it does not name each
/// NIC column once.
std::vector<std::string_view> read_nic_legend(const CapturedText& text, const Header& header,
                                              std::size_t from);

}  // namespace gdrperf::topo
