#include "engine/transfer/push_transfer.h"

#include <arpa/inet.h>

#include <algorithm>

#include "gdrperf/base/clock.h"

namespace gdrperf::engine {

using conn::Side;

PushTransfer::PushTransfer(StagingEnd& end, Peer& peer)
    : StagingTransfer(end, peer) {
  if (own_staged_ && end.initiates()) out_ = end.buffer().make_copier();
  // --consume: a direct receiver has work for its GPU as well.
  if (end.is_target() && (own_staged_ || spec_.consume)) in_ = end.buffer().make_copier();
}

bool PushTransfer::receives() const {
  return side_ == Side::kServer || spec_.bidirectional();
}

/// Queues copies, or marks chunks as ready, as far as both rings have room.
bool PushTransfer::issue() {
  bool moved = false;
  while (cutter_.messages < limit_ && issued_ - credited_ < wire_.slots && issued_ - completed_ < wire_.slots) {
    Chunk& chunk = ring_[issued_ % wire_.slots];
    chunk = cutter_.next(chunk_, spec_.size_bytes, layout_);
    if (out_) {
      out_->to_host(end_.out_slot(issued_ % wire_.slots), end_.initiator_area() + chunk.offset, chunk.bytes);
      out_->mark();
    }
    ++issued_;
    moved = true;
  }
  return moved;
}

void PushTransfer::post_chunk(const Chunk& chunk, std::uint64_t slot) {
  std::byte* const here = out_ ? end_.out_slot(slot) : end_.initiator_area() + chunk.offset;
  post_data(IBV_WR_RDMA_WRITE_WITH_IMM, chunk, slot, here);
}

void PushTransfer::reaped_send(const ibv_wc& wc) {
  if (wc.wr_id == kData) {
    ++completed_;
  } else {
    --notes_in_flight_;
  }
}

void PushTransfer::reaped_receive(const ibv_wc& wc) {
  if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) return arrived(wc.byte_len);
  // The number of chunks landed, modulo 2^32.
  const std::uint32_t fresh = ntohl(wc.imm_data) - static_cast<std::uint32_t>(credited_);
  for (const std::uint64_t end = credited_ + fresh; credited_ < end; ++credited_) {
    if (ring_[credited_ % wire_.slots].last) ++sent_;
  }
}

/// A chunk is in this end's wire memory.
void PushTransfer::arrived(std::uint64_t bytes) {
  std::byte* message = end_.target_area() + arrive_message_ % layout_.slots * layout_.stride;
  const bool last = arrive_offset_ + bytes >= spec_.size_bytes;
  // The client tries chunk sizes; its choice holds for the way back, too.
  if (arrive_offset_ == 0 && side_ == Side::kServer) chunk_ = bytes;
  if (end_.in_slot(0) != nullptr) {
    in_->to_gpu(message + arrive_offset_, end_.in_slot(arrived_ % wire_.slots), bytes);
  }
  if (in_) {
    if (last && spec_.consume) in_->consume(message, spec_.size_bytes);
    in_->mark();
  }
  last_ring_[arrived_ % wire_.slots] = last;
  ++arrived_;
  arrive_offset_ = last ? 0 : arrive_offset_ + bytes;
  if (last) ++arrive_message_;
}

bool PushTransfer::land() {
  const std::uint64_t reached = in_ ? in_->reached() : arrived_;
  for (; landed_ < reached; ++landed_) {
    if (last_ring_[landed_ % wire_.slots]) ++received_;
  }
  if (told_ == landed_ || notes_in_flight_ == wire_.slots) return false;
  post_note(static_cast<std::uint32_t>(landed_));
  told_ = landed_;
  return true;
}

bool PushTransfer::step() {
  bool moved = reap(end_.recv_cq());
  moved |= reap(end_.send_cq());
  moved |= issue();
  moved |= post_chunks(out_ ? out_->reached() : issued_);
  moved |= land();
  return moved;
}

std::optional<proto::Message> PushTransfer::bounce_until(std::uint64_t goal) {
  const Clock& clock = Clock::get();
  while (rounds_ < goal) {
    const std::uint64_t start = clock.ticks();
    const std::uint64_t awaited = rounds_ + 1;
    if (side_ == Side::kClient) limit_ = awaited;
    if (auto message = step_until([&] { return received_ >= awaited && all_told(); })) return message;
    if (side_ == Side::kClient) {
      histogram_.record(clock.ticks() - start);
    } else {
      limit_ = awaited;
      if (auto message = step_until([&] { return sent_ >= awaited; })) return message;
    }
    ++rounds_;
  }
  return std::nullopt;
}

}  // namespace gdrperf::engine
