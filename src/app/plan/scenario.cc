#include "app/plan/scenario.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/options/suggest.h"
#include "gdrperf/base/file.h"
#include "gdrperf/base/text.h"
#include "gdrperf/proto/spec.h"

namespace gdrperf::app {
namespace {

constexpr std::size_t kLargestScenario = std::size_t{1} << 20;
constexpr std::size_t kMostTests = 1000;
constexpr std::string_view kGlobal = "global";
constexpr std::string_view kCommandKey = "test";
/// Options that are typed on the command line of `gdrperf run`, or mean nothing in a file.
constexpr std::array<std::string_view, 6> kOfRun = {"json", "dry-run", "resume", "help", "version", "progress"};

/// Without a comment: a line, or its rest behind a blank, from # or ; on.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool begins = at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t';
    if (begins && (line[at] == '#' || line[at] == ';')) return line.substr(0, at);
  }
  return line;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names = {"sweep"};
  for (const Test test : all_tests()) names.push_back(to_string(test));
  return names;
}

std::string or_suggested(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string> near = suggestions(word, known);
  return near.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                      : fmt::format("did you mean {}?", fmt::join(near, ", "));
}

class Parser {
 public:
  explicit Parser(Scenario& scenario) : scenario_(scenario) {}

  void line(std::size_t number, std::string_view text) {
    number_ = number;
    if (text.find('\0') != std::string_view::npos) fail("a byte of zero", "a scenario is text; write the file anew");
    text = trimmed(without_comment(text));
    if (text.empty()) return;
    if (text.front() == '[') return section(text);
    if (!any_section_)
      fail("an option before the first [section]",
           "begin with [global] or with the name of a test, like [large writes]");
    option(text);
  }

  void end() {
    finish_section();
    if (scenario_.tests.empty())
      fail("no test in it", "a test is a section: a line like [large writes], then test = write_bw and options");
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw scenario_.at(number_, usage_error(what, hint));
  }

  void section(std::string_view text) {
    if (text.back() != ']')
      fail(fmt::format("'{:.60}': no ] at its end", text), "a section is a name in brackets: [large writes]");
    const std::string name(trimmed(text.substr(1, text.size() - 2)));
    if (name.empty()) fail("a section without a name", "like [large writes]");
    const auto same = [&](const ScenarioTest& test) { return test.name == name; };
    if (std::any_of(scenario_.tests.begin(), scenario_.tests.end(), same) || (any_section_ && current_.name == name)) {
      fail(fmt::format("[{}]: there are two", name), "each test has a name of its own");
    }
    const std::size_t here = number_;
    finish_section();
    if (name == kGlobal && any_section_) {
      number_ = here;
      fail("[global] behind a test", "what holds for all tests comes first");
    }
    if (scenario_.tests.size() == kMostTests)
      fail(fmt::format("more than {} tests", kMostTests), "make two files of it");
    any_section_ = true;
    current_ = {name, here, "", {}};
  }

  void option(std::string_view text) {
    const std::size_t equals = text.find('=');
    ScenarioOption option;
    option.name = std::string(trimmed(text.substr(0, equals)));
    option.line = number_;
    while (option.name.starts_with('-')) option.name.erase(0, 1);
    if (option.name.empty()) fail(fmt::format("'{:.60}': no option's name", text), "like size = 64K");
    if (option.name.find_first_of(" \t") != std::string::npos) {
      fail(fmt::format("'{:.60}': not an option", text), "write name = value, or a flag's name alone");
    }
    if (equals != std::string_view::npos) {
      option.has_value = true;
      option.value = std::string(trimmed(text.substr(equals + 1)));
      if (option.value.empty())
        fail(fmt::format("{}: needs a value", option.name), "leave the line out for its default");
    }
    if (std::find(kOfRun.begin(), kOfRun.end(), option.name) != kOfRun.end()) {
      fail(fmt::format("{}: not in a scenario", option.name),
           "give it to 'gdrperf run', where it has a meaning for all tests");
    }
    for (const ScenarioOption& other : current_.options) {
      if (other.name == option.name)
        fail(fmt::format("{}: given twice, first in line {}", option.name, other.line), "leave one of them out");
    }
    current_.options.push_back(std::move(option));
  }

  void finish_section() {
    if (!any_section_) return;
    if (current_.name == kGlobal) {
      global_ = std::move(current_.options);
      return;
    }
    std::vector<ScenarioOption> all;
    for (const ScenarioOption& each : global_) {
      const auto same = [&](const ScenarioOption& own) { return own.name == each.name; };
      if (std::none_of(current_.options.begin(), current_.options.end(), same)) all.push_back(each);
    }
    all.insert(all.end(), current_.options.begin(), current_.options.end());
    const auto command =
        std::find_if(all.begin(), all.end(), [](const ScenarioOption& one) { return one.name == kCommandKey; });
    const std::vector<std::string> known = command_names();
    if (command == all.end()) {
      number_ = current_.line;
      fail(fmt::format("[{}]: names no test", current_.name), "add a line like test = write_bw");
    }
    if (std::find(known.begin(), known.end(), command->value) == known.end()) {
      number_ = command->line;
      fail(fmt::format("test '{:.40}': there is none", command->value), or_suggested(command->value, known));
    }
    current_.command = command->value;
    all.erase(command);
    current_.options = std::move(all);
    scenario_.tests.push_back(std::move(current_));
    current_ = {};
  }

  Scenario& scenario_;
  std::size_t number_ = 0;
  bool any_section_ = false;
  ScenarioTest current_;
  std::vector<ScenarioOption> global_;
};

}  // namespace

std::vector<std::string> ScenarioOption::words() const {
  if (name == "host") return {value};
  if (name.size() == 1)
    return has_value ? std::vector<std::string>{"-" + name, value} : std::vector<std::string>{"-" + name};
  return {has_value ? "--" + name + "=" + value : "--" + name};
}

std::vector<std::string> ScenarioTest::words() const {
  std::vector<std::string> all = {command};
  for (const ScenarioOption& each : options) {
    for (std::string& word : each.words()) all.push_back(std::move(word));
  }
  return all;
}

Error Scenario::at(std::size_t line, const Error& error) const { return error.in(fmt::format("{}:{}", file, line)); }

Scenario parse_scenario(const std::string& file, std::string text) {
  Scenario scenario{file, std::move(text), {}};
  Parser parser(scenario);
  std::size_t number = 0;
  for (const std::string_view line : split(scenario.text, '\n')) parser.line(++number, line);
  parser.end();
  return scenario;
}

Scenario read_scenario(const std::string& path) { return parse_scenario(path, read_file(path, kLargestScenario)); }

}  // namespace gdrperf::app
