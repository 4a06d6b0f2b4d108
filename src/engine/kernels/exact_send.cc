#include "engine/kernels/exact_send.h"

#include <algorithm>

#include "engine/kernels/kernels.h"

namespace gdrperf::engine {

ExactSend::ExactSend(SendStream& stream, const std::vector<std::uint64_t>& messages)
    : stream_(stream), shares_(stream.queue_count) {
  for (std::size_t q = 0; q < shares_.size(); ++q) {
    const SendQueue& queue = stream_.queues[q];
    Share& share = shares_[q];
    share.left = messages[q];
    const std::uint64_t lists = stream_.depth_lists - queue.credit;
    share.in_flight = lists * stream_.post_list;
    // Lists since the last signalled one have no completion of their own.
    const auto place = static_cast<std::uint64_t>(queue.cursor - queue.begin) / stream_.post_list;
    share.signals = (lists - place % stream_.lists_per_signal) / stream_.lists_per_signal;
  }
}

bool ExactSend::post_list(SendQueue& queue, Share& share, Fault& fault) {
  const std::uint64_t messages = std::min<std::uint64_t>(stream_.post_list, share.left);
  ibv_send_wr& tail = queue.cursor[messages - 1];
  const bool group_ends = (tail.send_flags & IBV_SEND_SIGNALED) != 0;
  const bool last = messages == share.left;
  const auto flags = tail.send_flags;
  ibv_send_wr* const next = tail.next;
  if (last) {
    tail.send_flags |= IBV_SEND_SIGNALED;
    tail.next = nullptr;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(queue.qp, queue.cursor, &bad);
  tail.send_flags = flags;
  tail.next = next;
  if (error != 0) return kernels::set_fault(fault, error, "ibv_post_send");
  queue.cursor += stream_.post_list;
  if (queue.cursor == queue.end) queue.cursor = queue.begin;
  --queue.credit;
  ++queue.posted;
  share.left -= messages;
  share.in_flight += messages;
  share.cut = stream_.post_list - messages;
  share.odd_end = last && !group_ends;
  if (last || group_ends) ++share.signals;
  return true;
}

bool ExactSend::post(Fault& fault) {
  const bool paced = stream_.schedule.interval_ticks > 0;
  for (std::size_t q = 0; q < shares_.size(); ++q) {
    SendQueue& queue = stream_.queues[q];
    while (queue.credit > 0 && shares_[q].left > 0 && (!paced || stream_.schedule.open(Clock::get().ticks()))) {
      if (!post_list(queue, shares_[q], fault)) return false;
      ++stream_.schedule.posted;
    }
  }
  return true;
}

int ExactSend::reap(Fault& fault) {
  ibv_wc wc[kernels::kPollBatch];
  const int count = ibv_poll_cq(stream_.cq, kernels::kPollBatch, wc);
  if (count < 0) kernels::set_fault(fault, -count, "ibv_poll_cq(send)");
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) {
      kernels::set_fault(fault, wc[i], "send completion");
      return -1;
    }
    SendQueue& queue = stream_.queues[wc[i].wr_id];
    Share& share = shares_[wc[i].wr_id];
    const bool whole_queue = --share.signals == 0 && share.left == 0 && share.odd_end;
    const std::uint64_t messages =
        whole_queue ? share.in_flight : std::uint64_t{stream_.lists_per_signal} * stream_.post_list;
    queue.credit = whole_queue ? stream_.depth_lists : queue.credit + stream_.lists_per_signal;
    share.in_flight -= messages;
    stream_.completed += messages;
  }
  return count;
}

bool ExactSend::done() const {
  return std::all_of(shares_.begin(), shares_.end(),
                     [](const Share& share) { return share.left == 0 && share.in_flight == 0; });
}

std::vector<std::uint64_t> spread(std::uint64_t total, std::size_t queues) {
  std::vector<std::uint64_t> shares(queues, total / queues);
  for (std::size_t q = 0; q < total % queues; ++q) ++shares[q];
  return shares;
}

}  // namespace gdrperf::engine
