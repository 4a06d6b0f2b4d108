#include "gdrperf/base/outside.h"

#include <algorithm>

namespace gdrperf {
namespace {

bool plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_-.:/@+,").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_word(const Outside& text) {
  const std::string shown = printable(text);
  if (!shown.empty() && std::all_of(shown.begin(), shown.end(), plain)) return shown;
  std::string word = "'";
  for (const char c : shown) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace gdrperf
