#include "engine/figures/edge_search.h"

#include "engine/kernels/kernels.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {

EdgeSearch::EdgeSearch(SendStream& send, RecvStream* recv, std::uint64_t free_until)
    : send_(send),
      recv_(recv),
      free_until_(free_until),
      first_(send.completed),
      in_flight_(std::uint64_t{send.depth_lists} * send.post_list * send.queue_count) {
  edge_.before_ns = now_ns();
}

bool EdgeSearch::post(Fault& fault) {
  const bool paced = send_.schedule.interval_ticks > 0;
  return paced ? kernels::post_all<kernels::Pace::kOpen>(send_, fault)
               : kernels::post_all<kernels::Pace::kClosed>(send_, fault);
}

Outcome EdgeSearch::look(std::uint32_t polls, Fault& fault) {
  for (std::uint32_t i = 0; i < polls && send_.completed < free_until_; ++i) {
    if (!post(fault)) return Outcome::kFailed;
    if (recv_ != nullptr && kernels::reap_receives(*recv_, fault) < 0) return Outcome::kFailed;
    const double before_poll_ns = now_ns();
    const int count = kernels::reap_sends(send_, fault);
    if (count < 0) return Outcome::kFailed;
    if (count == 0) {
      edge_.before_ns = before_poll_ns;
      seen_empty_ = true;
    } else if (seen_empty_ || send_.completed - first_ >= in_flight_) {
      edge_.after_ns = now_ns();
      edge_.sent = send_.completed;
      return Outcome::kReached;
    }
  }
  return Outcome::kIdle;
}

}  // namespace gdrperf::engine
