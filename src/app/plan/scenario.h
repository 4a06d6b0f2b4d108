#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gdrperf/base/error.h"

namespace gdrperf::app {

/// One option of a scenario: "size = 64K", or "bidirectional" alone.
struct ScenarioOption {
  std::string name;
  std::string value;
  bool has_value = false;
  std::size_t line = 0;

  /// Words of a command line: {"--size=64K"}, {"-q", "4"}, {"node2"} of `host`.
  std::vector<std::string> words() const;
};

/// One test: a section.
struct ScenarioTest {
  std::string name;
  std::size_t line = 0;
  std::string command;  ///< write_bw, sweep, ...
  std::vector<ScenarioOption> options;  ///< those of [global] first, but what it says itself

  /// Command and its options, without the program.
  std::vector<std::string> words() const;
};

/// Tests to run one after the other, in the form of fio's job files (docs/how-to/scenarios.md).
struct Scenario {
  std::string file;
  std::string text;
  std::vector<ScenarioTest> tests;

  /// `error` with file and line in front.
  Error at(std::size_t line, const Error& error) const;
};

/// Reads "-" as standard input. Throws usage_error naming file and line, Error(kEnvironment) for what cannot be read.
Scenario read_scenario(const std::string& path);
/// `file` is for messages.
Scenario parse_scenario(const std::string& file, std::string text);

}  // namespace gdrperf::app
