#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "model/link.h"

namespace gdrperf::softnic {

/// Fault of one message.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  Instant time = 0;
  std::uint64_t random = 0;
};

/// The faults of a device in this process: which message is hit by which.
/// Thread-safe; the same sequence of messages is hit the same way.
class FaultPlan {
 public:
  FaultPlan(const std::vector<FaultRule>& rules, const Clock& clock);
  /// For the next message; `op` is one of FaultOps.
  Fault pick(std::uint8_t op) noexcept;

 private:
  struct Rule {
    FaultRule rule;
    Instant time = 0;
    std::atomic<std::uint64_t> seen{0};
    std::atomic<std::uint64_t> hits{0};
  };
  bool hits(Rule& rule, std::uint64_t seen, std::uint64_t random) noexcept;

  std::size_t count_;
  std::unique_ptr<Rule[]> rules_;
  std::atomic<std::uint64_t> messages_{0};
};

/// Link and faults of a device as its configuration has them at the moment.
struct DeviceModel {
  DeviceModel(const LinkConfig& config, const std::vector<FaultRule>& rules, const Clock& clock)
      : link(make_link_model(config, clock)), faults(rules, clock) {}
  LinkModel link;
  FaultPlan faults;
};

}  // namespace gdrperf::softnic
