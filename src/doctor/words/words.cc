#include "doctor/words/words.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "doctor/text.h"

namespace gdrperf::doctor {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

/// Whether one of the spellings in `words` is in `text`.
bool in(std::string_view text, const char* words) {
  if (words == nullptr) return true;
  for (std::string_view rest = words;;) {
    const std::size_t end = rest.find('|');
    if (text.find(rest.substr(0, end)) != std::string_view::npos) return true;
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
}

bool line_matches(std::string_view line, const WordRule& rule) {
  return std::all_of(std::begin(rule.line), std::end(rule.line),
                     [&](const char* words) { return in(line, words); });
}

}  // namespace

bool read_words(std::string_view text, std::span<const WordRule> rules, const std::string& source,
                Findings& findings) {
  const std::string all = lower_case(text);
  struct Open {
    const WordRule* rule;
    bool spoke = false;
  };
  std::vector<Open> open;
  for (const WordRule& rule : rules) {
    const bool barred = rule.without != nullptr && in(all, rule.without);
    if (in(all, rule.text) && !barred && in(all, rule.line[0])) open.push_back({&rule});
  }
  bool any = false;
  const auto lines = lines_of(text);
  const auto lower_lines = lines_of(all);
  for (std::size_t i = 0; i < lines.size() && !open.empty(); ++i) {
    const auto it = std::find_if(open.begin(), open.end(), [&](const Open& each) {
      return line_matches(lower_lines[i], *each.rule);
    });
    // A line that was understood before is not left to the next rule, which knows less.
    if (it == open.end() || it->spoke) continue;
    it->spoke = any = true;
    const WordRule& rule = *it->rule;
    Check(findings, rule.check, rule.why)
        .add(rule.verdict, "", rule.found, rule.fix)
        .for_good(rule.for_good)
        .saw(source, std::string(lines[i]));
  }
  return any;
}

}  // namespace gdrperf::doctor
