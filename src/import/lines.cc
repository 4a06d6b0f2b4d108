#include "import/lines.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gdrperf/base/compat/real.h"

namespace gdrperf::report {

std::string ImportPlace::text() const { return fmt::format("{}:{}", file, line); }

Error ImportPlace::error(const std::string& message, const std::string& hint) const {
  return usage_error(text() + ": " + message, hint);
}

bool ImportLines::next() {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  open_ = end == rest_.npos;
  line_ = rest_.substr(0, end);
  rest_ = open_ ? std::string_view() : rest_.substr(end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  ++number_;
  return true;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<std::uint64_t> count_in(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> quantity_in(std::string_view word) {
  if (word.empty() || word.find_first_not_of("0123456789.") != word.npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = real_from_chars(word.data(), word.data() + word.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace gdrperf::report
