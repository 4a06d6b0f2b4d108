#include "doctor/words/words.h"

#include <algorithm>
#include <array>
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

bool any_in(std::string_view text, const Spellings& spellings) {
  return std::any_of(spellings.begin(), spellings.end(),
                     [&](const std::string& each) { return text.find(each) != std::string_view::npos; });
}

bool all_in(std::string_view text, const std::vector<Spellings>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const Spellings& each) { return any_in(text, each); });
}

/// A register as lspci -vvv spells it: names of errors stand there whether or not they happened.
bool is_register_line(std::string_view line) {
  constexpr std::array kRegisters = {"DevCap",  "DevCtl",  "DevSta",   "LnkCap",   "LnkCtl",   "LnkSta",
                                     "UESta:",  "UEMsk:",  "UESvrt:",  "CESta:",   "CEMsk:",   "AERCap:",
                                     "ACSCap:", "ACSCtl:", "RootCmd:", "RootSta:", "RootCap:", "ErrorSrc:"};
  // Newer lspci breaks a register's line; its bits are names with a sign.
  constexpr std::array kBits = {"UnsupReq-", "UnsupReq+", "ACSViol-", "ACSViol+", "CmpltTO-", "CmpltTO+"};
  const std::string_view text = trimmed(line);
  return std::any_of(kRegisters.begin(), kRegisters.end(), [&](const char* each) { return text.starts_with(each); }) ||
         std::any_of(kBits.begin(), kBits.end(),
                     [&](const char* each) { return text.find(each) != std::string_view::npos; });
}

struct Open {
  const WordRule* rule;
  bool spoke = false;
};

std::vector<Open> rules_of(std::string_view all, const Words& words, WordScope scope) {
  std::vector<Open> open;
  for (const WordRule& rule : words.rules) {
    if (scope == WordScope::kKernelLog && !rule.kernel_log) continue;
    if (any_in(all, rule.unless) || !all_in(all, rule.text) || !all_in(all, rule.line)) continue;
    open.push_back({&rule});
  }
  return open;
}

void add_finding(const WordRule& rule, std::string_view line, const std::string& source, Findings& findings) {
  Check(findings, rule.check, rule.why)
      .add(rule.verdict, "", rule.found, rule.fix)
      .for_good(rule.for_good)
      .saw(source, std::string(line));
}

}  // namespace

bool matches_alone(const WordRule& rule, std::string_view line) {
  const std::string lower = lower_case(line);
  return all_in(lower, rule.line) && all_in(lower, rule.text) && !any_in(lower, rule.unless);
}

bool read_words(std::string_view text, const Words& words, WordScope scope, const std::string& source,
                Findings& findings) {
  const std::string all = lower_case(text);
  std::vector<Open> open = rules_of(all, words, scope);
  if (open.empty()) return false;
  Findings causes;
  Findings consequences;
  const auto lines = lines_of(text);
  const auto lower_lines = lines_of(all);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_register_line(lines[i])) continue;
    const auto it = std::find_if(open.begin(), open.end(),
                                 [&](const Open& each) { return all_in(lower_lines[i], each.rule->line); });
    // A line that was understood before is not left to the next rule, which knows less.
    if (it == open.end() || it->spoke) continue;
    it->spoke = true;
    add_finding(*it->rule, lines[i], source, it->rule->follows ? consequences : causes);
  }
  const bool cause = std::any_of(causes.begin(), causes.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::kFail || finding.verdict == Verdict::kWarn;
  });
  for (Finding& finding : causes) findings.push_back(std::move(finding));
  for (Finding& finding : consequences) {
    // Beside its cause it is no fault of its own.
    if (cause && finding.verdict == Verdict::kFail) finding.verdict = Verdict::kWarn;
    findings.push_back(std::move(finding));
  }
  return !causes.empty() || !consequences.empty();
}

}  // namespace gdrperf::doctor
