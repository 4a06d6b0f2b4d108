#include "app/options/parse_words.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/options/suggest.h"
#include "gdrperf/perftest/options.h"

namespace gdrperf::app {
namespace {

std::vector<std::string> known_words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (hidden(*option)) continue;
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(each->get_name());
  }
  return words;
}

/// "baseline add", without the program's name.
std::string words_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr) return {};
  const std::string before = words_of(*parent);
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

std::string help_of(const CLI::App& command) {
  const std::string words = words_of(command);
  return fmt::format("'gdrperf {}{}--help'", words, words.empty() ? "" : " ");
}

Error unknown_word(const CLI::App& command, const std::string& word) {
  const bool option = word.size() > 1 && word.front() == '-';
  const bool top = command.get_parent() == nullptr;
  // Rest of "-b=7".
  if (word.starts_with("-=")) {
    return usage_error(
        fmt::format("'{}' behind a flag of {}: a flag takes no value", word.substr(1), words_of(command)),
        help_of(command) + " shows which options take a value");
  }
  const std::string what = option ? "unknown option"
                           : top  ? "unknown command"
                                  : "unexpected argument";
  std::string hint = perftest_note(word);
  const auto near = suggestions(word.substr(0, word.find('=')), known_words(command));
  if (hint.empty() && !near.empty()) hint = fmt::format("did you mean {}?", fmt::join(near, " or "));
  if (hint.empty()) hint = help_of(command) + " lists what is accepted";
  return usage_error(fmt::format("{} '{}'{}", what, word, top ? "" : " for " + words_of(command)), hint);
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

void refuse_values_of_flags(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!is_flag(*option)) continue;
    for (const std::string& value : option->results()) {
      if (value == "true") continue;
      throw usage_error(fmt::format("{}={}: a flag takes no value", flag_of(*option), value),
                        fmt::format("give {} or leave it out", flag_of(*option)));
    }
  }
}

/// The command whose words were being read when parsing failed.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

/// CLI11 begins its message with the option's name.
const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : {option->get_name(), flag_of(*option)}) {
      if (!name.empty() && (message.starts_with(name + ":") || message.starts_with(name + " "))) return option;
    }
    if (message.find(": " + option->get_name() + " =") != std::string::npos) return option;
  }
  return nullptr;
}

/// CLI11's "--local excludes HOST" and "--link-model requires --machine" in this program's
/// words; nullopt: the message is about something else.
std::optional<Error> about_two_options(const CLI::App& command, const CLI::ParseError& error) {
  const bool excludes = dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr;
  if (!excludes && dynamic_cast<const CLI::RequiresError*>(&error) == nullptr) return std::nullopt;
  const std::string message = error.what();
  const std::size_t blank = message.find(' ');
  const auto flag = [&](const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option == nullptr ? name : flag_of(*option);
  };
  const std::string one = flag(message.substr(0, blank));
  const std::string other = flag(message.substr(message.rfind(' ') + 1));
  if (excludes) return usage_error(fmt::format("{} and {} exclude each other", one, other), "leave one of them out");
  return usage_error(fmt::format("{} means nothing without {}", one, other),
                     fmt::format("give {} as well, or leave {} out", other, one));
}

Error missing_command(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(each->get_name());
  }
  return usage_error(fmt::format("{}: one of {} has to follow", words_of(command), fmt::join(names, ", ")),
                     help_of(command) + " shows them");
}

}  // namespace

bool hidden(const CLI::Option& option) { return option.get_group().empty(); }

std::string flag_of(const CLI::Option& option) {
  if (!option.get_snames().empty()) return "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return option.get_name();
}

Error parse_failure(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  if (auto two = about_two_options(command, error)) {
    // The word behind an unknown option was taken for HOST.
    refuse_unknown(app);
    return *two;
  }
  const std::string help = help_of(command) + " shows what is accepted";
  const CLI::Option* option = option_in(command, error.what());
  if (option == nullptr) {
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
        !command.get_subcommands([](const CLI::App*) { return true; }).empty()) {
      return missing_command(command);
    }
    return usage_error(error.what(), help);
  }
  const std::string flag = flag_of(*option);
  if (is_flag(*option)) return usage_error(fmt::format("{}: a flag takes no value", flag), help);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return usage_error(fmt::format("{} is missing", flag), help);
  }
  const auto given = static_cast<int>(option->results().size());
  if (given > option->get_expected_max()) {
    return usage_error(fmt::format("{}: given {} times", flag, given),
                       flag == "-s" ? "give it once; several sizes are a list, like -s 64,4K" : "give it once");
  }
  const std::string type = option->get_type_name();
  return usage_error(option->get_expected_min() > 1
                         ? fmt::format("{}: needs {} values, {}", flag, option->get_expected_min(), type)
                         : fmt::format("{}: needs a value, {}", flag, type),
                     help);
}

void refuse_unknown(const CLI::App& app) {
  // CLI11 gathers what it does not know; the first of it is the mistake.
  if (const auto words = app.remaining(); !words.empty()) throw unknown_word(app, words.front());
  for (const CLI::App* command : app.get_subcommands()) {
    if (const auto words = command->remaining(); !words.empty()) throw unknown_word(*command, words.front());
    refuse_values_of_flags(*command);
  }
}

}  // namespace gdrperf::app
