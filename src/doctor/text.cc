#include "doctor/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "gdrperf/base/compat/real.h"

namespace gdrperf::doctor {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::string_view> value_after(std::string_view line, std::string_view key) {
  line = trimmed(line);
  if (!line.starts_with(key)) return std::nullopt;
  return trimmed(line.substr(key.size()));
}

std::optional<long long> number_of(std::string_view text) {
  text = trimmed(text);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double leading_number(std::string_view text) {
  text = trimmed(text);
  // Not "inf", "nan" or a sign.
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return 0;
  double value = 0;
  const auto [end, error] = real_from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::min(value, 1e15) : 0;
}

int leading_int(std::string_view text) {
  return static_cast<int>(std::min(leading_number(text), 1e9));
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

std::string first_line(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    if (!trimmed(line).empty()) return std::string(trimmed(line).substr(0, 200));
  }
  return {};
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const std::string_view word : words_of(text)) {
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

std::set<int> parse_cpu_list(std::string_view list) {
  std::set<int> cpus;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    const int first = leading_int(part);
    const std::size_t dash = part.find('-');
    const int last = dash == std::string_view::npos ? first : leading_int(part.substr(dash + 1));
    for (int cpu = first; cpu <= last && cpus.size() < 8192; ++cpu) cpus.insert(cpu);
    list.remove_prefix(std::min(part.size() + 1, list.size()));
  }
  return cpus;
}

}  // namespace gdrperf::doctor
