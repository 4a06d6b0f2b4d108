#include "shared/segment/lanes.h"

#include <algorithm>

#include "shared/sync/ring.h"

namespace gdrperf::softnic {

/// Behind the tags of QPs.
std::uint64_t Lane::lane_tag(std::uint32_t index) noexcept { return claim_tag(kMaxQps + index, Side::kReceive); }

bool Lane::take(Segment& segment, std::uint64_t process_id, bool light) noexcept {
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    LaneShared& candidate = segment.lanes[i];
    std::uint64_t nobody = 0;
    if (!candidate.holder.compare_exchange_strong(nobody, process_id)) continue;
    std::uint32_t used = segment.header.lanes_used.load();
    while (used < i + 1 && !segment.header.lanes_used.compare_exchange_weak(used, i + 1)) {
    }
    const std::uint64_t turns = candidate.turns.load();
    turn_ = turns + (turns & 1);
    shared_ = &candidate;
    holder_ = process_id;
    index_ = i;
    light_ = light;
    return true;
  }
  return false;
}

void Lane::give_back() noexcept {
  if (shared_ == nullptr) return;
  // The owner may have taken it away, if it held this process for dead.
  shared_->holder.compare_exchange_strong(holder_, 0);
  shared_ = nullptr;
}

}  // namespace gdrperf::softnic
