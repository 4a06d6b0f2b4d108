#include "late_options.h"

#include <map>
#include <utility>

#include <CLI/CLI.hpp>

namespace gdrperf::app {
namespace {

using Kept = std::map<CLI::App*, std::function<void()>>;

Kept& kept() {
  static Kept options;
  return options;
}

}  // namespace

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
