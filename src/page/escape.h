#pragma once

#include <string>
#include <string_view>

namespace gdrperf::page {

/// For text and attribute values of HTML and SVG; control characters become U+FFFD.
std::string html_text(std::string_view text);

/// JSON that may stand in a script element: no '<', so no end of it and no comment.
std::string script_safe(std::string json);

}  // namespace gdrperf::page
