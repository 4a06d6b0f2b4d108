#include "app/options/late_options.h"

#include <algorithm>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include "gdrperf/base/text.h"

namespace gdrperf::app {
namespace {

using Kept = std::map<CLI::App*, std::function<void()>>;

Kept& kept() {
  static Kept options;
  return options;
}

Argv& words_now() {
  static Argv words;
  return words;
}

/// "--rate=5" has --rate, "-aF" has -a and -F.
bool has(std::string_view word, std::string_view flag) {
  if (flag.starts_with("--")) return word.substr(0, word.find('=')) == flag;
  return word.starts_with('-') && !word.starts_with("--") && word.find(flag.back()) != std::string_view::npos;
}

}  // namespace

void set_words(const Argv& words) { words_now() = words; }

bool may_be_typed(std::string_view flags) {
  const std::vector<std::string_view> all = split(flags, ',');
  return std::any_of(words_now().begin(), words_now().end(), [&](const std::string& word) {
    return word.starts_with('-') &&
           std::any_of(all.begin(), all.end(), [&](std::string_view flag) { return has(word, flag); });
  });
}

void add_when_typed(CLI::App& command, std::function<void()> add) {
  kept()[&command] = std::move(add);
  command.preparse_callback([&command](std::size_t) { add_now(command); });
}

void add_now(CLI::App& command) {
  if (const auto mine = kept().extract(&command)) mine.mapped()();
}

void add_all_now() {
  for (const auto& [command, add] : std::exchange(kept(), {})) add();
}

}  // namespace gdrperf::app
