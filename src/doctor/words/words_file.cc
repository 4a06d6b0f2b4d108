// The text format of known messages: blocks of "key: value", blank lines between them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/text.h"
#include "doctor/words/words.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/file.h"

namespace gdrperf::doctor {
namespace {

constexpr std::size_t kMostWords = 4u << 20;

struct WordField {
  std::string key;
  std::string value;
  int line = 0;
};

[[noreturn]] void refuse_words(const std::string& name, int line, const std::string& what, const std::string& hint) {
  throw usage_error(fmt::format("{}:{}: {}", name, line, what), hint);
}

constexpr const char* kKeys =
    "class, source, log, check, verdict, line, text, unless, found, why, fix, for-good, example, role";

Spellings spellings_of(const WordField& field, const std::string& name) {
  Spellings spellings;
  std::string_view rest = field.value;
  // Quotes keep blanks at both ends of the value.
  if (rest.size() >= 2 && rest.front() == '"' && rest.back() == '"') rest = rest.substr(1, rest.size() - 2);
  for (;;) {
    const std::size_t end = rest.find('|');
    const std::string_view word = rest.substr(0, end);
    if (word.size() < 2)
      refuse_words(name, field.line, fmt::format("'{}:' has a spelling of less than 2 characters", field.key),
                   "'|' stands between spellings");
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    spellings.push_back(std::move(lower));
    if (end == std::string_view::npos) return spellings;
    rest.remove_prefix(end + 1);
  }
}

Verdict verdict_of(const WordField& field, const std::string& name) {
  for (const Verdict verdict : {Verdict::kOk, Verdict::kWarn, Verdict::kFail, Verdict::kSkip}) {
    if (field.value == to_string(verdict)) return verdict;
  }
  refuse_words(name, field.line, fmt::format("verdict '{}' is none", field.value), "OK, WARN, FAIL or SKIP");
}

/// WordBlocks of fields, each with the number of its first line.
class WordBlocks {
 public:
  WordBlocks(std::string_view text, const std::string& name) : name_(name) {
    int number = 0;
    for (const std::string_view line : lines_of(text)) take(line, ++number);
    close();
  }
  const std::vector<std::vector<WordField>>& all() const { return blocks_; }

 private:
  void take(std::string_view line, int number) {
    if (line.starts_with('#')) return;
    const std::string_view content = trimmed(line);
    if (content.empty()) return close();
    if (line.front() == ' ' || line.front() == '\t') {
      if (open_.empty())
        refuse_words(name_, number, "a continued line without a line to continue",
                     "'key: value' at the start of a line");
      open_.back().value += " " + std::string(content);
      return;
    }
    const std::size_t colon = content.find(':');
    if (colon == std::string_view::npos)
      refuse_words(name_, number, fmt::format("'{}' is no 'key: value'", content.substr(0, 40)), kKeys);
    open_.push_back({std::string(content.substr(0, colon)), std::string(trimmed(content.substr(colon + 1))), number});
    if (open_.back().value.empty())
      refuse_words(name_, number, fmt::format("'{}:' has no value", open_.back().key),
                   "leave the line out where there is none");
  }
  void close() {
    if (!open_.empty()) blocks_.push_back(std::move(open_));
    open_.clear();
  }

  const std::string& name_;
  std::vector<WordField> open_;
  std::vector<std::vector<WordField>> blocks_;
};

class WordParser {
 public:
  explicit WordParser(const std::string& name) : name_(name) {}
  void take(const std::vector<WordField>& block) {
    if (block.front().key == "class") return open_class(block);
    if (class_ == kNone)
      refuse_words(name_, block.front().line, "a rule in front of the first class",
                   "class: NAME, source: WHERE ITS MESSAGES COME FROM");
    WordRule rule;
    rule.line_number = block.front().line;
    rule.kernel_log = kernel_log_;
    for (const WordField& field : block) set(rule, field);
    judge(rule);
    WordClass& own = words_.classes[class_];
    ++own.rules;
    std::size_t most = 0;
    for (const Spellings& part : rule.line) most = std::max(most, part.size());
    own.messages += static_cast<int>(most);
    words_.rules.push_back(std::move(rule));
  }
  Words words() { return std::move(words_); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void open_class(const std::vector<WordField>& block) {
    const std::string& name = block.front().value;
    const auto known = std::find_if(words_.classes.begin(), words_.classes.end(),
                                    [&](const WordClass& each) { return each.name == name; });
    class_ = static_cast<std::size_t>(known - words_.classes.begin());
    if (known == words_.classes.end()) words_.classes.push_back({name, {}, 0, 0});
    kernel_log_ = false;
    for (const WordField& field : block) {
      if (field.key == "source") {
        words_.classes[class_].source = field.value;
      } else if (field.key == "log") {
        if (field.value != "kernel")
          refuse_words(name_, field.line, fmt::format("log '{}' is none", field.value),
                       "log: kernel, or no such line");
        kernel_log_ = true;
      } else if (field.key != "class") {
        refuse_words(name_, field.line, fmt::format("'{}:' is no part of a class", field.key),
                     "class, source, log; a blank line ends it");
      }
    }
    if (words_.classes[class_].source.empty())
      refuse_words(name_, block.front().line, fmt::format("class '{}' has no source", name),
                   "source: WHERE ITS MESSAGES COME FROM");
  }

  void set(WordRule& rule, const WordField& field) {
    const std::array<std::pair<const char*, std::string*>, 5> texts = {{{"check", &rule.check},
                                                                        {"found", &rule.found},
                                                                        {"why", &rule.why},
                                                                        {"fix", &rule.fix},
                                                                        {"for-good", &rule.for_good}}};
    for (const auto& [key, text] : texts) {
      if (field.key != key) continue;
      if (!text->empty())
        refuse_words(name_, field.line, fmt::format("a second '{}:' in one rule", key),
                     "a blank line stands between rules");
      *text = field.value;
      return;
    }
    if (field.key == "line") {
      rule.line.push_back(spellings_of(field, name_));
    } else if (field.key == "text") {
      rule.text.push_back(spellings_of(field, name_));
    } else if (field.key == "unless") {
      rule.unless = spellings_of(field, name_);
    } else if (field.key == "verdict") {
      rule.verdict = verdict_of(field, name_);
      has_verdict_ = true;
    } else if (field.key == "example") {
      rule.examples.push_back(field.value);
    } else if (field.key == "role" && field.value == "follows") {
      rule.follows = true;
    } else {
      refuse_words(name_, field.line, fmt::format("'{}: {}' is not known", field.key, field.value.substr(0, 40)),
                   kKeys);
    }
  }

  void judge(const WordRule& rule) {
    const auto missing = [&](const char* key) {
      refuse_words(name_, rule.line_number, fmt::format("the rule has no '{}:'", key),
                   "a rule has check, verdict, line, found; WARN and FAIL have why and fix, too");
    };
    if (rule.check.empty()) missing("check");
    if (!has_verdict_) missing("verdict");
    has_verdict_ = false;
    if (rule.line.empty()) missing("line");
    if (rule.found.empty()) missing("found");
    const bool fault = rule.verdict == Verdict::kWarn || rule.verdict == Verdict::kFail;
    if (fault && rule.fix.empty()) missing("fix");
    for (const std::string& example : rule.examples) {
      if (rule.text.empty() && !matches_alone(rule, example)) {
        refuse_words(name_, rule.line_number,
                     fmt::format("the rule does not match its example '{}'", example.substr(0, 60)),
                     "each 'line:' must be in it");
      }
    }
  }

  const std::string& name_;
  Words words_;
  std::size_t class_ = kNone;
  bool kernel_log_ = false;
  bool has_verdict_ = false;
};

}  // namespace

Words parse_words(std::string_view text, const std::string& name) {
  WordParser parser(name);
  const WordBlocks blocks(text, name);
  for (const auto& block : blocks.all()) parser.take(block);
  return parser.words();
}

Words words_with(const std::string& path) {
  Words words = parse_words(read_file(path, kMostWords), path);
  const Words& known = known_words();
  words.rules.insert(words.rules.end(), known.rules.begin(), known.rules.end());
  words.classes.insert(words.classes.end(), known.classes.begin(), known.classes.end());
  return words;
}

}  // namespace gdrperf::doctor
