#pragma once

#include <string>
#include <string_view>

namespace gdrperf {

/// `text` as a terminal gets it, whoever wrote it: printable_lines(), with tabs and the sequences of styled() left in.
std::string terminal_text(std::string_view text);

}  // namespace gdrperf
