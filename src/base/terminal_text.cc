#include <algorithm>
#include <array>

#include "gdrperf/base/printable.h"

namespace gdrperf {
namespace {

/// Of styled(): bold, dim, three colours, and back to plain. Others could hide text or move the cursor.
constexpr std::array<std::string_view, 6> kOwn = {"\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m"};

/// Bytes of `text` that stay as they are at its beginning.
std::size_t own_bytes(std::string_view text) {
  if (text.starts_with('\t')) return 1;
  const auto found =
      std::find_if(kOwn.begin(), kOwn.end(), [text](std::string_view each) { return text.starts_with(each); });
  return found == kOwn.end() ? 0 : found->size();
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t own = own_bytes(text);
    result += text.substr(0, own);
    text.remove_prefix(own);
    if (text.empty()) break;
    const std::size_t next = std::min(text.find_first_of("\t\033", own == 0 ? 1 : 0), text.size());
    result += printable_lines(text.substr(0, next));
    text.remove_prefix(next);
  }
  return result;
}

}  // namespace gdrperf
