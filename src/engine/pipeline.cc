#include "pipeline.h"

#include <arpa/inet.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "gdrperf/base/clock.h"
#include "gdrperf/base/error.h"
#include "measure.h"

namespace gdrperf::engine {
namespace {

using conn::Side;

constexpr std::uint64_t kDataSend = 0;
constexpr std::uint64_t kCreditSend = 1;
constexpr int kPollBatch = 16;
constexpr std::uint32_t kIdleBeforeYield = 256;
/// What a size has to move for its rate to be told from another's.
constexpr std::uint64_t kTrialBytes = 128u << 20;
/// Without a trial (latency): short stages, launches still well hidden.
constexpr std::uint64_t kDefaultChunk = 1u << 20;

}  // namespace

Pipeline::Pipeline(Side side, LocalEnd& end, const TestSpec& spec, Peer& peer)
    : side_(side),
      end_(end),
      spec_(spec),
      peer_(peer),
      wire_(wire_shape(spec)),
      layout_(layout_of(spec)),
      device_(end.device()),
      chunk_(std::min(wire_.slot_bytes, kDefaultChunk)),
      peer_staged_(staged(spec, side == Side::kClient ? Side::kServer : Side::kClient)),
      issued_ring_(wire_.slots),
      last_ring_(wire_.slots) {
  const bool copies = staged(spec, side);
  if (copies && end.initiates()) out_ = end.buffer().make_copier();
  // --consume: a direct receiver has work for its GPU as well.
  if (end.is_target() && (copies || spec.consume)) in_ = end.buffer().make_copier();
  if (!copies && !peer_staged_) chunk_ = wire_.slot_bytes;
  post_receives();
}

/// Data and credits both take a receive without memory.
void Pipeline::post_receives() {
  for (std::uint64_t i = 0; i < 2 * wire_.slots; ++i) {
    ibv_recv_wr request{};
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(end_.qp(), &request, &bad);
    if (error != 0) throw call_error("ibv_post_recv", error, device_);
  }
}

void Pipeline::fail(const ibv_wc& wc, const char* what) {
  Fault fault;
  fault.status = wc.status;
  fault.vendor_error = wc.vendor_err;
  peer_.throw_fault(fault, device_, what);
}

void Pipeline::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  Fault fault;
  fault.call = "ibv_post_send";
  fault.post_errno = ibv_post_send(end_.qp(), &request, &bad);
  if (fault.post_errno != 0) peer_.throw_fault(fault, device_, "RDMA write");
}

/// Queues copies, or marks chunks as ready, as far as both rings have room.
bool Pipeline::issue() {
  bool moved = false;
  while (started_ < limit_ && issued_ - credited_ < wire_.slots && issued_ - completed_ < wire_.slots) {
    Chunk& chunk = issued_ring_[issued_ % wire_.slots];
    chunk.bytes = std::min(chunk_, spec_.size_bytes - issue_offset_);
    chunk.offset = started_ % layout_.slots * layout_.stride + issue_offset_;
    issue_offset_ += chunk.bytes;
    chunk.last = issue_offset_ == spec_.size_bytes;
    if (chunk.last) {
      issue_offset_ = 0;
      ++started_;
    }
    if (out_) {
      out_->to_host(end_.out_slot(issued_ % wire_.slots), end_.initiator_area() + chunk.offset, chunk.bytes);
      out_->mark();
    }
    ++issued_;
    moved = true;
  }
  return moved;
}

bool Pipeline::post_ready() {
  const std::uint64_t ready = out_ ? out_->reached() : issued_;
  const bool moved = posted_ < ready;
  for (; posted_ < ready; ++posted_) post_chunk(issued_ring_[posted_ % wire_.slots]);
  return moved;
}

void Pipeline::post_chunk(const Chunk& chunk) {
  const std::uint64_t slot = posted_ % wire_.slots;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(out_ ? end_.out_slot(slot) : end_.initiator_area() + chunk.offset);
  piece.length = static_cast<std::uint32_t>(chunk.bytes);
  piece.lkey = end_.lkey();
  ibv_send_wr request{};
  request.wr_id = kDataSend;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr =
      end_.remote().address + (peer_staged_ ? slot * wire_.slot_bytes : chunk.offset);
  request.wr.rdma.rkey = end_.remote().rkey;
  post(request);
}

bool Pipeline::reap_sends() {
  ibv_wc wc[kPollBatch];
  const int count = ibv_poll_cq(end_.send_cq(), kPollBatch, wc);
  if (count < 0) throw call_error("ibv_poll_cq(send)", -count, device_);
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) fail(wc[i], "RDMA write");
    if (wc[i].wr_id == kDataSend) {
      ++completed_;
    } else {
      --credits_in_flight_;
    }
  }
  return count > 0;
}

bool Pipeline::reap_receives() {
  ibv_wc wc[kPollBatch];
  const int count = ibv_poll_cq(end_.recv_cq(), kPollBatch, wc);
  if (count < 0) throw call_error("ibv_poll_cq(receive)", -count, device_);
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) fail(wc[i], "receive");
    ibv_recv_wr request{};
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(end_.qp(), &request, &bad);
    if (error != 0) throw call_error("ibv_post_recv", error, device_);
    if (wc[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      arrived(wc[i].byte_len);
      continue;
    }
    // The number of chunks landed, modulo 2^32.
    const std::uint32_t fresh = ntohl(wc[i].imm_data) - static_cast<std::uint32_t>(credited_);
    for (const std::uint64_t end = credited_ + fresh; credited_ < end; ++credited_) {
      if (issued_ring_[credited_ % wire_.slots].last) ++sent_;
    }
  }
  return count > 0;
}

/// A chunk is in this end's wire memory.
void Pipeline::arrived(std::uint64_t bytes) {
  std::byte* message = end_.target_area() + arrive_message_ % layout_.slots * layout_.stride;
  const bool last = arrive_offset_ + bytes >= spec_.size_bytes;
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

bool Pipeline::land() {
  const std::uint64_t reached = in_ ? in_->reached() : arrived_;
  for (; landed_ < reached; ++landed_) {
    if (last_ring_[landed_ % wire_.slots]) ++received_;
  }
  if (told_ == landed_ || credits_in_flight_ == wire_.slots) return false;
  tell_credit();
  return true;
}

void Pipeline::tell_credit() {
  ibv_send_wr request{};
  request.wr_id = kCreditSend;
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(static_cast<std::uint32_t>(landed_));
  post(request);
  ++credits_in_flight_;
  told_ = landed_;
}

/// Everything that can be done now. False: there was nothing.
bool Pipeline::step() {
  bool moved = reap_receives();
  moved |= reap_sends();
  moved |= issue();
  moved |= post_ready();
  moved |= land();
  return moved;
}

template <typename Done>
std::optional<proto::Message> Pipeline::step_until(Done done) {
  StallWatch stall(device_);
  std::uint32_t idle = 0;
  while (!done()) {
    if (step()) {
      idle = 0;
      continue;
    }
    if (++idle % kIdleBeforeYield != 0) continue;
    ::sched_yield();
    if (auto message = peer_.poll_now_and_then()) return message;
    stall.check(credited_ + landed_);
  }
  return std::nullopt;
}

std::optional<proto::Message> Pipeline::send_until(std::uint64_t goal) {
  limit_ = ~std::uint64_t{0};
  return step_until([&] { return sent_ >= goal; });
}

std::optional<proto::Message> Pipeline::receive_until(std::uint64_t goal) {
  return step_until([&] { return received_ >= goal && told_ == landed_; });
}

std::optional<proto::Message> Pipeline::send_lap(std::uint64_t messages) {
  limit_ = started_ + messages;
  return step_until([&] { return sent_ >= limit_ && completed_ == posted_; });
}

void Pipeline::drain() {
  // A message that has been begun is sent to its end.
  limit_ = started_ + (issue_offset_ != 0 ? 1 : 0);
  if (step_until([&] { return sent_ >= limit_ && completed_ == posted_; })) {
    throw peer_error("the peer spoke while the pipeline was being drained");
  }
}

std::optional<proto::Message> Pipeline::bounce_until(std::uint64_t goal) {
  const Clock& clock = Clock::get();
  while (rounds_ < goal) {
    const std::uint64_t start = clock.ticks();
    const std::uint64_t awaited = rounds_ + 1;
    if (side_ == Side::kClient) limit_ = awaited;
    if (auto message = step_until([&] { return received_ >= awaited && told_ == landed_; })) return message;
    if (side_ == Side::kClient) {
      end_.plan().histogram.record(clock.ticks() - start);
    } else {
      limit_ = awaited;
      if (auto message = step_until([&] { return sent_ >= awaited; })) return message;
    }
    ++rounds_;
  }
  return std::nullopt;
}

void Pipeline::choose_chunk() {
  if (spec_.chunk_bytes != 0) chunk_ = wire_.slot_bytes;
  if (spec_.chunk_bytes != 0 || (!out_ && !peer_staged_)) return;
  const std::uint64_t messages = std::clamp<std::uint64_t>(kTrialBytes / spec_.size_bytes, 2, 256);
  double best = 0;
  std::uint64_t chosen = chunk_;
  for (std::uint64_t chunk = wire_.slot_bytes; chunk >= 128u << 10 || chunk == wire_.slot_bytes; chunk /= 2) {
    chunk_ = chunk;
    // Twice: the first time pays for what is new to driver and caches.
    for (int pass = 0; pass < 2; ++pass) {
      const double start = now_ns();
      if (send_lap(messages)) throw peer_error("the server spoke while chunk sizes were being tried");
      const double rate = static_cast<double>(messages * spec_.size_bytes) / (now_ns() - start);
      if (rate <= best) continue;
      best = rate;
      chosen = chunk;
    }
  }
  chunk_ = chosen;
}

}  // namespace gdrperf::engine
