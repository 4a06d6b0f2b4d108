#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace gdrperf::app {

/// Keeps `add` until somebody wants the options of `command`: with those of every test a start took ten times as
/// long. `add` lives as long as the process. Of one thread.
void add_later(CLI::App& command, std::function<void()> add);

/// Adds what was kept for `command`, once.
void add_now(CLI::App& command);

/// Adds what was kept for any command: for pages and completion, which show all.
void add_all_now();

}  // namespace gdrperf::app
