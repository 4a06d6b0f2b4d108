#include "engine/setup/set_up_steps.h"

#include <fmt/format.h>

namespace gdrperf::engine {

SetUpSteps::SetUpSteps(RunObserver* observer, const Demand& demand) : observer_(observer) {
  constexpr std::uint64_t kLargeBytes = 256u << 20;
  constexpr int kManyQps = 100;
  const std::uint64_t bytes = demand.messages_bytes + demand.staging_bytes;
  if (bytes >= kLargeBytes) memory_ = about(bytes);
  if (demand.qps >= kManyQps) queues_ = fmt::format("{} QPs", demand.qps);
}

void SetUpSteps::memory(const char* doing) const {
  if (observer_ != nullptr && !memory_.empty()) observer_->setting_up(fmt::format("{} {}", doing, memory_));
}

void SetUpSteps::queues(const char* doing) const {
  if (observer_ != nullptr && !queues_.empty()) observer_->setting_up(fmt::format("{} {}", doing, queues_));
}

void SetUpSteps::server() const {
  if (observer_ == nullptr || (memory_.empty() && queues_.empty())) return;
  const char* const between = memory_.empty() || queues_.empty() ? "" : ", ";
  observer_->setting_up(fmt::format("waiting for the server to set up ({}{}{})", queues_, between, memory_));
}

}  // namespace gdrperf::engine
