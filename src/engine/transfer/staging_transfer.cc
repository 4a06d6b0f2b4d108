#include "engine/transfer/staging_transfer.h"

#include <arpa/inet.h>

#include <algorithm>

#include "gdrperf/base/error.h"
#include "engine/figures/measure.h"

namespace gdrperf::engine {
namespace {

constexpr int kPollBatch = 16;
/// Bytes that a chunk size has to move before its rate is comparable.
constexpr std::uint64_t kTrialBytes = 128u << 20;
constexpr std::uint64_t kSmallestChunk = 128u << 10;
/// Without a trial (latency): short stages, launches still well hidden.
constexpr std::uint64_t kDefaultChunk = 1u << 20;
/// The peer's notes come in bunches, of a pipe-full at most: so many of those in a batch.
constexpr std::uint64_t kLeastPipes = 4;
/// For what has arrived by an edge to be seen.
constexpr int kEdgeSteps = 4;

}  // namespace

StagingTransfer::StagingTransfer(StagingEnd& end, Peer& peer)
    : side_(end.side()),
      end_(end),
      spec_(end.spec()),
      peer_(peer),
      wire_(spec_.wire()),
      layout_(spec_.layout()),
      device_(end.device()),
      own_staged_(end.staged()),
      peer_staged_(end.peer_staged()),
      chunk_(wire_.slot_bytes),
      ring_(wire_.slots),
      last_ring_(wire_.slots) {
  while ((own_staged_ || peer_staged_) && chunk_ > kDefaultChunk) set_chunk_shift(chunk_shift_ + 1);
  // Data and notes both take a receive without memory.
  for (std::uint64_t i = 0; i < 2 * wire_.slots; ++i) post_receive();
}

void StagingTransfer::set_chunk_shift(unsigned shift) {
  chunk_shift_ = shift;
  chunk_ = std::max<std::uint64_t>(wire_.slot_bytes >> shift, 1);
}

StagingTransfer::Chunk StagingTransfer::Cutter::next(std::uint64_t chunk_bytes, std::uint64_t message_bytes,
                                           const Layout& layout) {
  Chunk chunk;
  chunk.bytes = std::min(chunk_bytes, message_bytes - begun);
  chunk.offset = messages % layout.slots * layout.stride + begun;
  begun += chunk.bytes;
  chunk.last = begun == message_bytes;
  if (chunk.last) {
    begun = 0;
    ++messages;
  }
  return chunk;
}

void StagingTransfer::post_receive() {
  ibv_recv_wr request{};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(end_.qp(), &request, &bad);
  if (error != 0) throw call_error("ibv_post_recv", error, device_);
}

void StagingTransfer::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  Fault fault;
  fault.call = "ibv_post_send";
  fault.post_errno = ibv_post_send(end_.qp(), &request, &bad);
  if (fault.post_errno != 0) peer_.throw_fault(fault, device_, "RDMA write");
}

void StagingTransfer::post_note(std::uint32_t value) {
  ibv_send_wr request{};
  request.wr_id = kNote;
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(value);
  post(request);
  ++notes_in_flight_;
}

bool StagingTransfer::post_chunks(std::uint64_t ready) {
  const bool moved = posted_ < ready;
  for (std::uint64_t bytes = 0; posted_ < ready && bytes < kStepBytes; ++posted_) {
    const std::uint64_t slot = posted_ % wire_.slots;
    post_chunk(ring_[slot], slot);
    bytes += ring_[slot].bytes;
  }
  return moved;
}

void StagingTransfer::post_data(ibv_wr_opcode opcode, const Chunk& chunk, std::uint64_t slot, std::byte* here) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uintptr_t>(here);
  piece.length = static_cast<std::uint32_t>(chunk.bytes);
  piece.lkey = end_.lkey();
  ibv_send_wr request{};
  request.wr_id = kData;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = end_.remote().address + (peer_staged_ ? slot * wire_.slot_bytes : chunk.offset);
  request.wr.rdma.rkey = end_.remote().rkey;
  post(request);
}

bool StagingTransfer::reap(ibv_cq* cq) {
  const bool sends = cq == end_.send_cq();
  ibv_wc wc[kPollBatch];
  const int count = ibv_poll_cq(cq, kPollBatch, wc);
  if (count < 0) throw call_error(sends ? "ibv_poll_cq(send)" : "ibv_poll_cq(receive)", -count, device_);
  for (int i = 0; i < count; ++i) {
    if (wc[i].status != IBV_WC_SUCCESS) {
      Fault fault;
      fault.status = wc[i].status;
      fault.vendor_error = wc[i].vendor_err;
      const bool reads = spec_.test.operation == Operation::kRead;
      peer_.throw_fault(fault, device_, !sends ? "receive" : reads ? "RDMA read" : "RDMA write");
    }
    if (sends) {
      reaped_send(wc[i]);
    } else {
      post_receive();
      reaped_receive(wc[i]);
    }
  }
  return count > 0;
}

std::optional<proto::Message> StagingTransfer::send_until(std::uint64_t goal) {
  limit_ = spec_.stop.iterations.value_or(~std::uint64_t{0});
  return step_until([&] { return sent_ >= goal; });
}

std::optional<Edge> StagingTransfer::edge() {
  Edge edge;
  edge.before_ns = now_ns();
  for (int i = 0; i < kEdgeSteps && step(); ++i) {
  }
  edge.after_ns = now_ns();
  edge.sent = sent_;
  return edge;
}

std::uint64_t StagingTransfer::least_batch() const {
  return std::max<std::uint64_t>(kLeastPipes * wire_.bytes() / spec_.size_bytes, 1);
}

std::optional<proto::Message> StagingTransfer::receive_until(std::uint64_t goal) {
  return step_until([&] { return received_ >= goal && all_told(); });
}

std::optional<proto::Message> StagingTransfer::send_lap(const std::vector<std::uint64_t>& messages) {
  limit_ = cutter_.messages + messages.front();
  const auto done = [&] { return sent_ >= limit_ && idle(); };
  std::optional<proto::Message> early;
  while (auto message = step_until(done)) early = std::move(message);
  return early;
}

void StagingTransfer::drain() {
  // A message that has been begun goes on to its end.
  limit_ = cutter_.messages + (cutter_.begun != 0 ? 1 : 0);
  if (step_until([&] { return sent_ >= limit_ && idle(); })) {
    throw peer_error("the peer spoke while chunks under way were awaited");
  }
}

void StagingTransfer::tune() {
  if (spec_.chunk_bytes != 0) set_chunk_shift(0);
  // Trials would be messages beyond the N of -n.
  if (spec_.chunk_bytes != 0 || spec_.stop.iterations || !(own_staged_ || peer_staged_)) return;
  const std::uint64_t messages = std::clamp<std::uint64_t>(kTrialBytes / spec_.size_bytes, 2, 256);
  double best = 0;
  unsigned chosen = chunk_shift_;
  for (unsigned shift = 0; shift == 0 || wire_.slot_bytes >> shift >= kSmallestChunk; ++shift) {
    set_chunk_shift(shift);
    // Twice: the first time pays for what is new to driver and caches.
    for (int pass = 0; pass < 2; ++pass) {
      const double start = now_ns();
      if (send_lap({messages})) throw peer_error("the server spoke while chunk sizes were being tried");
      const double rate = static_cast<double>(messages * spec_.size_bytes) / (now_ns() - start);
      if (rate <= best) continue;
      best = rate;
      chosen = shift;
    }
  }
  set_chunk_shift(chosen);
}

}  // namespace gdrperf::engine
