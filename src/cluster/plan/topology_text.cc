#include "cluster/plan/topology_text.h"

#include <algorithm>
#include <cctype>

namespace gdrperf::cluster {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char one, unsigned char other) {
    return std::tolower(one) == std::tolower(other);
  });
}

}  // namespace

void for_each_line(std::string_view text, const std::function<void(std::string_view, int)>& take) {
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view value_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    const auto equals = word.find('=');
    if (equals != std::string_view::npos && same_word(word.substr(0, equals), key)) return word.substr(equals + 1);
    line.remove_prefix(word.size());
  }
  return {};
}

std::string_view first_quoted(std::string_view text) {
  const auto begin = text.find('"');
  const auto end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
}

bool is_ibnetdiscover(std::string_view text) {
  return text.find("\nSwitch\t") != std::string_view::npos || text.find("\nSwitch ") != std::string_view::npos ||
         text.starts_with("Switch\t") || text.starts_with("Switch ");
}

}  // namespace gdrperf::cluster
