#include <cerrno>

#include "transport/rc_inline.h"

/// ibv_post_send: the plain write of one SGE in few instructions, everything
/// else the general way; and mode null.
namespace gdrperf::softnic {

/// Does a write of one registered SGE to memory within reach, when nothing
/// stands in its way. False: nothing was done, take the general way, which
/// finds out what the matter is.
inline bool Qp::fast_write(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey,
                           std::uint64_t wr_id, unsigned flags) noexcept {
  if (gated() || state() != IBV_QPS_RTS || target_.segment == nullptr ||
      target_.dead->load(std::memory_order_relaxed)) {
    return false;
  }
  const MrShared* from = find_region(process.regions(), sge.lkey, pd, 0, sge.addr, sge.length);
  if (from == nullptr || in_gpu(*from) || sge.length == 0 || sge.length > kMaxMessageBytes || !enter()) return false;
  const MrShared* to = find_region(target_.regions, rkey, target_.pd, IBV_ACCESS_REMOTE_WRITE,
                                   remote_addr, sge.length);
  std::uint8_t* direct = nullptr;
  if (to != nullptr && (target_.access & IBV_ACCESS_REMOTE_WRITE) != 0) {
    direct = reach(target_, *to, to->addr + (remote_addr - to->iova), sge.length);
  }
  if (direct != nullptr) {
    copy_last_byte_last(direct, reinterpret_cast<const std::uint8_t*>(from->addr + (sge.addr - from->iova)),
                        sge.length);
  }
  leave();
  if (direct == nullptr) return false;
  ++posted_;
  if (signal_all_ || (flags & IBV_SEND_SIGNALED) != 0) {
    SendOp op{};
    op.wr_id = wr_id;
    op.opcode = IBV_WR_RDMA_WRITE;
    op.flags = IBV_SEND_SIGNALED;
    op.sq_count = posted_;
    complete(op, IBV_WC_SUCCESS, sge.length);
  }
  return true;
}

void Qp::submit_built(SendOp& op) noexcept {
  const bool plain = op.opcode == IBV_WR_RDMA_WRITE && op.num_sge == 1 && (op.flags & IBV_SEND_INLINE) == 0;
  if (plain && fast_write(*op.sges, op.remote_addr, op.rkey, op.wr_id, op.flags)) return;
  submit(op);
}

inline SendOp SendOp::from(const ibv_send_wr& request) noexcept {
  SendOp op;
  op.wr_id = request.wr_id;
  op.remote_addr = request.wr.rdma.remote_addr;
  op.sges = request.sg_list;
  op.rkey = request.wr.rdma.rkey;
  op.imm = request.imm_data;
  op.num_sge = static_cast<std::uint16_t>(request.num_sge);
  op.opcode = static_cast<std::uint8_t>(request.opcode);
  op.flags = static_cast<std::uint8_t>(request.send_flags);
  op.compare_add = 0;
  op.swap = 0;
  if (op.opcode > IBV_WR_RDMA_READ) [[unlikely]] {
    op.remote_addr = request.wr.atomic.remote_addr;
    op.rkey = request.wr.atomic.rkey;
    op.compare_add = request.wr.atomic.compare_add;
    op.swap = request.wr.atomic.swap;
  }
  return op;
}

int Qp::post_send(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  sq_lock.lock_favoured();
  int error = 0;
  if (state() < IBV_QPS_RTS) [[unlikely]] error = EINVAL;
  for (; error == 0 && request != nullptr; request = request->next) {
    if (request->opcode == IBV_WR_RDMA_WRITE && request->num_sge == 1 &&
        (request->send_flags & IBV_SEND_INLINE) == 0 && !sq_full() &&
        fast_write(*request->sg_list, request->wr.rdma.remote_addr, request->wr.rdma.rkey,
                   request->wr_id, request->send_flags)) [[likely]] {
      continue;
    }
    SendOp op = SendOp::from(*request);
    error = request->num_sge < 0 ? EINVAL : check_op(op);
    if (op.opcode > IBV_WR_ATOMIC_FETCH_AND_ADD && error == 0) [[unlikely]] error = take_window_request(*request, op);
    if (error == 0 && sq_full()) error = ENOMEM;
    if (error != 0) break;
    submit(op);
  }
  sq_lock.unlock();
  if (error != 0) *bad = request;
  return error;
}

/// Link model and faults: no short way.
int Qp::post_send_modelled(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  sq_lock.lock_favoured();
  int error = state() < IBV_QPS_RTS ? EINVAL : 0;
  for (; error == 0 && request != nullptr; request = request->next) {
    SendOp op = SendOp::from(*request);
    error = request->num_sge < 0 ? EINVAL : check_op(op);
    if (op.opcode > IBV_WR_ATOMIC_FETCH_AND_ADD && error == 0) error = take_window_request(*request, op);
    if (error == 0 && sq_full()) error = ENOMEM;
    if (error != 0) break;
    submit(op);
  }
  end_post();
  if (error != 0) *bad = request;
  return error;
}

/// Mode null: what the device itself costs is next to nothing.
int Qp::post_send_null(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  sq_lock.lock_favoured();
  int error = state() == IBV_QPS_RTS ? 0 : EINVAL;
  for (; error == 0 && request != nullptr; request = request->next) {
    if (request->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD || static_cast<std::uint32_t>(request->num_sge) > cap_.max_send_sge) {
      error = EINVAL;
      break;
    }
    if (sq_full()) {
      error = ENOMEM;
      break;
    }
    ++posted_;
    if ((request->send_flags & IBV_SEND_SIGNALED) != 0 || signal_all_) complete_null(*request);
  }
  sq_lock.unlock();
  if (error != 0) *bad = request;
  return error;
}

/// Apart, so that the loop above needs no room for it.
[[gnu::noinline]] void Qp::complete_null(const ibv_send_wr& request) noexcept {
  SendOp op{};
  op.wr_id = request.wr_id;
  op.opcode = static_cast<std::uint8_t>(request.opcode);
  op.flags = IBV_SEND_SIGNALED;
  op.sq_count = posted_;
  std::uint32_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  complete(op, IBV_WC_SUCCESS, bytes);
}

}  // namespace gdrperf::softnic
