#include "engine/transfer/pull_transfer.h"

#include <arpa/inet.h>

#include <algorithm>

#include "gdrperf/base/clock.h"

namespace gdrperf::engine {

using conn::Side;

PullTransfer::PullTransfer(StagingEnd& end, Peer& peer)
    : StagingTransfer(end, peer) {
  if (own_staged_ && end.is_target()) out_ = end.buffer().make_copier();
  // --consume: a direct reader has work for its GPU as well.
  if (end.initiates() && (own_staged_ || spec_.consume)) in_ = end.buffer().make_copier();
}

/// Cuts what may be read into chunks, each with a slot at both ends.
bool PullTransfer::plan() {
  bool moved = false;
  while (cutter_.messages < limit_ && planned_ - landed_ < wire_.slots) {
    ring_[planned_ % wire_.slots] = cutter_.next(chunk_, spec_.size_bytes, layout_);
    ++planned_;
    moved = true;
  }
  if (!peer_staged_) ready_ = planned_;
  return moved;
}

/// Tells a count; `told` follows. A quarter of the send queue is for notes of
/// either kind.
bool PullTransfer::tell(std::uint32_t kind, std::uint64_t count, std::uint64_t& told) {
  if (told == count || notes_in_flight_ >= wire_.slots / 2) return false;
  const std::uint32_t shift = kind == Note::kOffer ? 0 : chunk_shift_ << Note::kShiftAt;
  post_note(kind | shift | (static_cast<std::uint32_t>(count) & Note::kCount));
  told = count;
  return true;
}

void PullTransfer::post_chunk(const Chunk& chunk, std::uint64_t slot) {
  std::byte* const here = own_staged_ ? end_.in_slot(slot) : end_.initiator_area() + chunk.offset;
  post_data(IBV_WR_RDMA_READ, chunk, slot, here);
}

void PullTransfer::reaped_send(const ibv_wc& wc) {
  if (wc.wr_id == kNote) {
    --notes_in_flight_;
  } else {
    arrived(ring_[completed_ % wire_.slots]);
    ++completed_;
  }
}

/// A chunk is in this end's wire memory.
void PullTransfer::arrived(const Chunk& chunk) {
  if (!in_) return;
  std::byte* const at = end_.initiator_area() + chunk.offset;
  if (own_staged_) in_->to_gpu(at, end_.in_slot(completed_ % wire_.slots), chunk.bytes);
  if (chunk.last && spec_.consume) in_->consume(at + chunk.bytes - spec_.size_bytes, spec_.size_bytes);
  in_->mark();
}

bool PullTransfer::land() {
  const std::uint64_t reached = in_ ? in_->reached() : completed_;
  const bool moved = landed_ < reached;
  for (; landed_ < reached; ++landed_) {
    if (ring_[landed_ % wire_.slots].last) ++sent_;
  }
  return moved;
}

void PullTransfer::reaped_receive(const ibv_wc& wc) {
  const std::uint32_t note = ntohl(wc.imm_data);
  const bool offer = (note & Note::kOffer) != 0;
  std::uint64_t& count = offer ? ready_ : wanted_;
  count += (note - static_cast<std::uint32_t>(count)) & Note::kCount;
  // Changes only while nothing is under way.
  if (!offer) source_shift_ = note >> Note::kShiftAt & 7;
}

/// Queues copies of what the peer asked for; it asks for no more than there are
/// slots.
bool PullTransfer::produce() {
  const bool moved = out_ && issued_ < wanted_;
  for (; moved && issued_ < wanted_; ++issued_) {
    const std::uint64_t slot = issued_ % wire_.slots;
    const Chunk chunk = source_.next(wire_.slot_bytes >> source_shift_, spec_.size_bytes, layout_);
    out_->to_host(end_.out_slot(slot), end_.target_area() + chunk.offset, chunk.bytes);
    out_->mark();
    last_ring_[slot] = chunk.last;
  }
  return moved;
}

bool PullTransfer::offer() {
  if (!out_) return false;
  const std::uint64_t before = offered_;
  if (!tell(Note::kOffer, out_->reached(), offered_)) return false;
  for (std::uint64_t chunk = before; chunk < offered_; ++chunk) {
    if (last_ring_[chunk % wire_.slots]) ++received_;
  }
  return true;
}

bool PullTransfer::step() {
  bool moved = reap(end_.recv_cq());
  moved |= reap(end_.send_cq());
  moved |= plan();
  if (peer_staged_) moved |= tell(0, planned_, asked_);
  moved |= post_chunks(ready_);
  moved |= land();
  moved |= produce();
  moved |= offer();
  return moved;
}

std::optional<proto::Message> PullTransfer::bounce_until(std::uint64_t goal) {
  const Clock& clock = Clock::get();
  for (; rounds_ < goal; ++rounds_) {
    const std::uint64_t start = clock.ticks();
    limit_ = rounds_ + 1;
    if (auto message = step_until([&] { return sent_ >= limit_; })) return message;
    histogram_.record(clock.ticks() - start);
  }
  return std::nullopt;
}

}  // namespace gdrperf::engine
