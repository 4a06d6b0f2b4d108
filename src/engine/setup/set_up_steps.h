#pragma once

#include <string>

#include "engine/setup/demand.h"
#include "gdrperf/engine/observer.h"

namespace gdrperf::engine {

/// Tells an observer, where there is one, the steps of a set-up that may take
/// seconds: one with much memory or many QPs.
class SetUpSteps {
 public:
  SetUpSteps() = default;
  SetUpSteps(RunObserver* observer, const Demand& demand);

  /// "allocating" -> "allocating 4 GiB".
  void memory(const char* doing) const;
  /// "connecting" -> "connecting 1000 QPs".
  void queues(const char* doing) const;
  void server() const;

 private:
  RunObserver* observer_ = nullptr;
  std::string memory_;  ///< "" where it is little
  std::string queues_;  ///< "" where they are few
};

}  // namespace gdrperf::engine
