#include "late_options.h"

#include <map>
#include <utility>

namespace gdrperf::app {
namespace {

using Kept = std::map<CLI::App*, std::function<void()>>;

Kept& kept() {
  static Kept options;
  return options;
}

}  // namespace

void add_later(CLI::App& command, std::function<void()> add) { kept()[&command] = std::move(add); }

void add_now(CLI::App& command) {
  if (const auto mine = kept().extract(&command)) mine.mapped()();
}

void add_all_now() {
  for (const auto& [command, add] : std::exchange(kept(), {})) add();
}

}  // namespace gdrperf::app
