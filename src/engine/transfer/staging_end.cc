#include "engine/transfer/staging_end.h"

#include "engine/transfer/pull_transfer.h"
#include "engine/transfer/push_transfer.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

Side other(Side side) { return side == Side::kClient ? Side::kServer : Side::kClient; }

std::unique_ptr<mem::Buffer> slots_for(const ResolvedSpec& spec, Side side, const mem::Buffer& buffer) {
  if (!spec.staged(side)) return nullptr;
  return mem::make_bounce_buffer(buffer.kind(), 2 * spec.wire().bytes());
}

}  // namespace

StagingEnd::StagingEnd(EndInput input) : LocalEnd(std::move(input)) {
  // Access of the peer to this end's wire memory.
  const int access = reads() ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  register_memory(IBV_ACCESS_LOCAL_WRITE | access, slots_for(spec(), side(), buffer()));
  const std::byte* const at = !staged() ? target_area() : reads() ? out_slot(0) : in_slot(0);
  if (is_target()) offer(at, wire_bytes(staged()));
  make_queues({access});
}

bool StagingEnd::peer_staged() const { return spec().staged(other(side())); }

std::uint64_t StagingEnd::wire_bytes(bool staged) const {
  return staged ? spec().wire().bytes() : spec().layout().qp_bytes();
}

std::byte* StagingEnd::out_slot(std::uint64_t slot) const {
  return staging() ? staging()->data() + slot * spec().wire().slot_bytes : nullptr;
}

std::byte* StagingEnd::in_slot(std::uint64_t slot) const {
  return staging() ? out_slot(slot) + spec().wire().bytes() : nullptr;
}

/// Data and notes of a window each way; all requests are signalled.
QueueDemand StagingEnd::queues(const ResolvedSpec& spec, Side) {
  const int depth = static_cast<int>(2 * spec.wire().slots);
  return {.send_wr = depth, .recv_wr = depth, .send_entries = depth + 1, .recv_entries = depth + 1};
}

void StagingEnd::connected() {
  if (initiates()) check_offered(wire_bytes(peer_staged()));
}

std::unique_ptr<Transfer> StagingEnd::make_transfer(Peer& peer) {
  if (reads()) return std::make_unique<PullTransfer>(*this, peer);
  return std::make_unique<PushTransfer>(*this, peer);
}

}  // namespace gdrperf::engine
