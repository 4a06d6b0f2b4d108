#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace gdrperf::app {

/// Has `add` add the options of `command` when it is typed: with those of every test a start took ten times as
/// long. Takes the command's callback before it is parsed. Of one thread.
void add_when_typed(CLI::App& command, std::function<void()> add);

/// Adds what was kept for `command`, once.
void add_now(CLI::App& command);

/// Adds what was kept for any command: for pages and completion, which show all.
void add_all_now();

}  // namespace gdrperf::app
