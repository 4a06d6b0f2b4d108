#include "flight/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "memory/copy.h"

namespace gdrperf::softnic {
namespace {

std::uint32_t inline_slots(std::uint32_t bytes) { return (bytes + 15) / 16; }

}  // namespace

SendQueue::SendQueue(const ibv_qp_cap& limits, const std::atomic<std::uint32_t>& released, Mode mode, bool may_favour)
    : lock(may_favour), gate_{0, mode}, limits_(limits), released_(released) {
  const std::uint32_t slots = std::bit_ceil(std::max(limits.max_send_wr, 1u));
  const std::uint32_t sges = std::max(limits.max_send_sge, 1 + inline_slots(limits.max_inline_data));
  slot_mask_ = slots - 1;
  slot_stride_ = (static_cast<std::uint32_t>(sizeof(SendOp) + sizeof(ibv_sge) * sges) + 63) & ~63u;
  // Not initialised: a slot is written before it is read.
  slots_.reset(new std::uint8_t[static_cast<std::size_t>(slots) * slot_stride_]);
}

int SendQueue::check(const SendOp& op) const noexcept {
  if (op.num_sge > limits_.max_send_sge) return EINVAL;
  if ((op.flags & IBV_SEND_INLINE) != 0) [[unlikely]] {
    std::uint64_t total = 0;
    for (unsigned i = 0; i < op.num_sge; ++i) total += op.sges[i].length;
    if (total > limits_.max_inline_data || is_read_like(op.opcode)) return EINVAL;
  }
  return 0;
}

void SendQueue::keep(const SendOp& op) noexcept {
  store(op);
  ++gate_.waiting;
}

void SendQueue::store(const SendOp& op) noexcept {
  SendSlot& stored = slot(op.sq_count);
  if (&stored.op == &op) return;
  stored.op = op;
  stored.op.sges = stored.sges;
  if ((op.flags & IBV_SEND_INLINE) == 0) {
    for (unsigned i = 0; i < op.num_sge; ++i) stored.sges[i] = op.sges[i];
    return;
  }
  auto* data = reinterpret_cast<std::uint8_t*>(&stored.sges[1]);
  std::uint32_t length = 0;
  for (unsigned i = 0; i < op.num_sge; ++i) {
    if (op.sges[i].length == 0) continue;
    const Piece piece{data + length, op.sges[i].length, nullptr};
    copy_pieces_from(reinterpret_cast<const std::uint8_t*>(op.sges[i].addr), &piece, 1);
    length += op.sges[i].length;
  }
  stored.op.num_sge = 1;
  stored.sges[0] = {reinterpret_cast<std::uint64_t>(data), length, 0};
}

SendSlot* SendQueue::add_draft() noexcept {
  if (draft_error_ != 0) return nullptr;
  // As in full(): peers write to what was polled.
  if (posted_ + drafted_ - released() >= limits_.max_send_wr || gate_.waiting + drafted_ > slot_mask_) {
    draft_error_ = ENOMEM;
    return nullptr;
  }
  SendSlot& fresh = slot(posted_ + ++drafted_);
  fresh.op = {};
  fresh.op.sges = fresh.sges;
  return &fresh;
}

}  // namespace gdrperf::softnic
