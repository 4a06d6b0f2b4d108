#include "app/plan/resume.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/report/document.h"
#include "gdrperf/report/earlier_part.h"
#include "gdrperf/report/environment.h"

namespace gdrperf::app {
namespace {

/// Outputs whose earlier lines nobody can make from a document; the document itself goes to FILE.
constexpr std::array<std::string_view, 5> kOutputs = {"--json", "--csv", "--format", "-o", "--output"};

/// `word` is `--resume=FILE`.
bool has_value(const std::string& word) { return word.starts_with(std::string(kResumeFlag) + "="); }

Error not_to_go_on_with(const std::string& file, const std::string& why, const std::string& hint) {
  return usage_error(fmt::format("{} {}: {}", kResumeFlag, file, why), hint);
}

/// Without where output went: an option and its value, or both in one word.
std::vector<std::string> without_outputs(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string name = words[at].substr(0, words[at].find('='));
    if (std::find(kOutputs.begin(), kOutputs.end(), name) == kOutputs.end()) {
      kept.push_back(words[at]);
      continue;
    }
    if (name == words[at]) ++at;
  }
  return kept;
}

}  // namespace

std::string resumed_file(const std::vector<std::string>& argv) {
  if (argv.size() < 2 || argv[1] != "sweep") return {};
  const auto flag = std::find_if(argv.begin(), argv.end(), [](const std::string& word) {
    return word == kResumeFlag || has_value(word);
  });
  if (flag == argv.end() || std::find(argv.begin(), argv.end(), "--help") != argv.end()) return {};
  const bool one_word = has_value(*flag);
  if (!one_word && flag + 1 == argv.end()) return {};  // parsing says so
  for (auto word = argv.begin() + 2; word != argv.end(); ++word) {
    if (word == flag || (!one_word && word == flag + 1)) continue;
    throw usage_error(fmt::format("{}: takes all options from the document's own command line; leave out '{}'",
                                  kResumeFlag, *word));
  }
  return one_word ? flag->substr(flag->find('=') + 1) : *(flag + 1);
}

std::vector<std::string> resumed_command_line(const std::string& program, const std::string& file) {
  const report::EarlierPart part = of_option(kResumeFlag, [&] { return report::read_earlier_part(file); });
  if (part.argv.size() < 2 || part.argv[1] != "sweep") {
    throw not_to_go_on_with(file, "was not made by 'gdrperf sweep'", "run its command again");
  }
  const report::Tool tool = report::this_tool({});
  const std::string version = fmt::format("{} ({})", tool.version, tool.git);
  if (part.version != version) {
    throw not_to_go_on_with(
        file, fmt::format("was made by gdrperf {}, this is {}", part.version, version),
        "results of two versions do not belong in one document: sweep again, and use 'gdrperf compare'");
  }
  const std::string host = report::collect_environment().hostname;
  if (part.host != host) {
    throw not_to_go_on_with(file, fmt::format("was measured on '{}', this is '{}'", part.host, host), "go on there");
  }
  std::vector<std::string> words = without_outputs({part.argv.begin() + 1, part.argv.end()});
  words.insert(words.begin(), program);
  words.insert(words.end(), {"--json", file, kResumeFlag, file});
  return words;
}

}  // namespace gdrperf::app
