#pragma once

#include <functional>
#include <string_view>

#include "app/command.h"

namespace CLI {
class App;
}

namespace gdrperf::app {

/// Has `add` add the options of `command` when it is typed: with those of every test a start took ten times as
/// long. Takes the command's callback before it is parsed. Of one thread.
void add_when_typed(CLI::App& command, std::function<void()> add);

/// Adds what was kept for `command`, once.
void add_now(CLI::App& command);

/// The command line that is parsed next. Of one thread.
void set_words(const Argv& words);

/// Whether it may have an option: `flags` as "-F,--CPU-freq". True for more than it has, as letters can be typed
/// together.
bool may_be_typed(std::string_view flags);

/// Adds what was kept for any command: for pages and completion, which show all.
void add_all_now();

}  // namespace gdrperf::app
