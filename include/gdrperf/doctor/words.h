#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gdrperf/doctor/doctor.h"

namespace gdrperf::doctor {

/// Whether any of some spellings, in lower case, must be in a line or text.
using Spellings = std::vector<std::string>;

/// Meaning of another program's message: a line that has one spelling of each entry of `line`, in a text that has
/// one spelling of each entry of `text` and none of `unless`. Upper and lower case are the same.
struct WordRule {
  std::string check;  ///< of the finding
  Verdict verdict = Verdict::kSkip;
  std::vector<Spellings> line;
  std::vector<Spellings> text;
  Spellings unless;
  std::string found;
  std::string why;
  std::string fix;
  std::string for_good;
  std::vector<std::string> examples;  ///< messages as programs print them, which the rule matches
  bool follows = false;               ///< a consequence: another error came before it
  bool kernel_log = false;            ///< printed by the kernel, so that the doctor looks for it in dmesg
  int line_number = 0;                ///< where the rule begins in its file
};

/// Source of messages and how many of them are known.
struct WordClass {
  std::string name;    ///< "mlx5_core", "NCCL", ...
  std::string source;  ///< where its messages were read
  int rules = 0;
  int messages = 0;  ///< spellings that the rules distinguish
};

/// Known messages: the first rule that matches a line has it, and a rule reports once.
struct Words {
  std::vector<WordRule> rules;
  std::vector<WordClass> classes;
};

/// Those of the program. docs/how-to/doctor.md describes the format.
const Words& known_words();

/// Those of a text, `name` in errors. Throws usage_error with name, line and what is expected there.
Words parse_words(std::string_view text, const std::string& name);

/// Those of a file in front of those of the program. Throws usage_error as parse_words() does.
Words words_with(const std::string& path);

}  // namespace gdrperf::doctor
