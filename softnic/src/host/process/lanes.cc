#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "host/process/process.h"
#include "shared/segment/lanes.h"
#include "shared/sync/spin.h"

/// Those who act on QPs of this process over lanes, as their owner sees them.
namespace gdrperf::softnic {
namespace {

std::uint32_t lanes_used(Segment& segment) {
  // Others write there.
  return std::min(segment.header.lanes_used.load(std::memory_order_acquire), kMaxLanes);
}

/// The turn that it was in is over.
void free_lane(LaneShared& lane, std::uint64_t turn) {
  if ((turn & 1) != 0) lane.turns.compare_exchange_strong(turn, turn + 1);
}

}  // namespace

bool Process::await_lanes(LocalQp& qp, std::uint32_t index, std::chrono::steady_clock::time_point limit) {
  bool all_left = true;
  const std::uint32_t used = lanes_used(segment());
  for (std::uint32_t i = 0; i < used; ++i) {
    LaneShared& lane = segment().lanes[i];
    const std::uint64_t turn = lane.turns.load(std::memory_order_acquire);
    if ((turn & 1) == 0 || lane.qp.load() != index) continue;
    for (int looks = 0; lane.turns.load(std::memory_order_acquire) == turn; ++looks) {
      if (looks < 1000) {
        cpu_relax();
        continue;
      }
      ::usleep(100);
      if (looks % 100 == 0 && control_.has_hung_up(lane.holder.load())) {
        qp.repair_lane(Lane::lane_tag(i));
        free_lane(lane, turn);
        break;
      }
      if (std::chrono::steady_clock::now() > limit) {
        all_left = false;
        break;
      }
    }
  }
  return all_left;
}

void Process::free_lanes_of(std::uint64_t process_id) {
  const std::uint32_t used = lanes_used(segment());
  for (std::uint32_t i = 0; i < used; ++i) {
    LaneShared& lane = segment().lanes[i];
    if (lane.holder.load() != process_id) continue;
    const std::uint64_t turn = lane.turns.load();
    if ((turn & 1) != 0) {
      with_qp(lane.qp.load() & (kMaxQps - 1), [i](LocalQp& qp) { qp.repair_lane(Lane::lane_tag(i)); });
      free_lane(lane, turn);
    }
    std::uint64_t holder = process_id;
    lane.holder.compare_exchange_strong(holder, 0);
  }
}

}  // namespace gdrperf::softnic
