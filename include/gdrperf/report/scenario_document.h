#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gdrperf/report/document.h"

namespace gdrperf::report {

/// One test of a scenario that was run.
struct ScenarioPart {
  std::string name;
  std::size_t line = 0;            ///< of the scenario's file
  std::vector<std::string> words;  ///< its command line
  int exit_code = 0;
};

/// Result document of a scenario in the making: the documents of its tests as one, and the scenario itself. Hosts and
/// topology are those of the first test that has them.
class ScenarioDocument {
 public:
  /// `names`: all tests, in their order.
  ScenarioDocument(Tool tool, std::string file, std::string text, std::vector<std::string> names);
  ~ScenarioDocument();
  ScenarioDocument(const ScenarioDocument&) = delete;
  ScenarioDocument& operator=(const ScenarioDocument&) = delete;

  /// `document`: what the test has written; "" when it came to nothing. Throws usage_error for what is no document.
  void add(const ScenarioPart& part, const std::string& document);
  /// Whether any test has written a document; without one there is none.
  bool any() const;
  std::string to_json() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gdrperf::report
