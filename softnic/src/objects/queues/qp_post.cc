#include <cerrno>

#include "objects/attributes/ah.h"
#include "objects/queues/qp.h"

/// ibv_post_send: the plain write of one SGE in few instructions, everything
/// else the general way; and mode null.
namespace gdrperf::softnic {

/// Does a plain write when nothing stands in its way. False: nothing was done,
/// take the general way, which finds out what the matter is.
bool Qp::fast_write(const ibv_sge& sge, std::uint64_t remote_addr, std::uint32_t rkey, std::uint64_t wr_id,
                    unsigned flags) noexcept {
  if (send_queue.gated() || state() != IBV_QPS_RTS || !connected_->write_plain(sge, remote_addr, rkey)) return false;
  send_queue.count_one();
  if (signal_all_ || (flags & IBV_SEND_SIGNALED) != 0) complete_write(wr_id, sge.length);
  return true;
}

/// Apart, so that writes that are not signalled need no room for it.
[[gnu::noinline]] void Qp::complete_write(std::uint64_t wr_id, std::uint32_t bytes) noexcept {
  SendOp op{};
  op.wr_id = wr_id;
  op.opcode = IBV_WR_RDMA_WRITE;
  op.flags = IBV_SEND_SIGNALED;
  op.sq_count = send_queue.posted();
  complete(op, IBV_WC_SUCCESS, bytes);
}

void Qp::submit_built(SendOp& op) noexcept {
  const bool plain = op.opcode == IBV_WR_RDMA_WRITE && op.num_sge == 1 && (op.flags & IBV_SEND_INLINE) == 0;
  if (plain && fast_write(*op.sges, op.remote_addr, op.rkey, op.wr_id, op.flags)) return;
  submit(op);
}

int Qp::check(SendOp& op) const noexcept {
  if (op.opcode >= 32 || (transport_->opcodes() & opcode_bit(op.opcode)) == 0) return EINVAL;
  return send_queue.check(op);
}

/// Fills in what only some requests have. 0, or EINVAL.
inline int Qp::prepare(const ibv_send_wr& request, SendOp& op) noexcept {
  if (request.num_sge < 0) return EINVAL;
  const int error = check(op);
  if ((op.opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD && plain_requests_) || error != 0) [[likely]] return error;
  return prepare_special(request, op);
}

int Qp::prepare_special(const ibv_send_wr& request, SendOp& op) noexcept {
  if (!datagrams()) {
    const int error = op.opcode > IBV_WR_ATOMIC_FETCH_AND_ADD ? take_window_request(request, op) : 0;
    if (!plain_requests_ && !is_local(op.opcode)) set_srq_number(op, request.qp_type.xrc.remote_srqn);
    return error;
  }
  const ibv_ah* const handle = request.wr.ud.ah;
  if (handle == nullptr) return EINVAL;
  address(op, *handle, request.wr.ud.remote_qpn, request.wr.ud.remote_qkey);
  return 0;
}

/// For what is not in this file: in post_send() it is a part of the loop.
int Qp::prepare_apart(const ibv_send_wr& request, SendOp& op) noexcept { return prepare(request, op); }

int Qp::post_send(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  send_queue.lock.lock_favoured();
  int error = 0;
  if (state() < IBV_QPS_RTS) [[unlikely]] error = EINVAL;
  for (; error == 0 && request != nullptr; request = request->next) {
    if (request->opcode == IBV_WR_RDMA_WRITE && request->num_sge == 1 &&
        (request->send_flags & IBV_SEND_INLINE) == 0 && !send_queue.full() &&
        fast_write(*request->sg_list, request->wr.rdma.remote_addr, request->wr.rdma.rkey,
                   request->wr_id, request->send_flags)) [[likely]] {
      continue;
    }
    SendOp op = SendOp::from(*request);
    error = prepare(*request, op);
    if (error == 0 && send_queue.full()) error = ENOMEM;
    if (error != 0) break;
    submit(op);
  }
  send_queue.lock.unlock();
  if (error != 0) *bad = request;
  return error;
}

/// Link model and faults, or TCP: no short way.
int Qp::post_send_in_steps(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  send_queue.lock.lock_favoured();
  int error = state() < IBV_QPS_RTS ? EINVAL : 0;
  for (; error == 0 && request != nullptr; request = request->next) {
    SendOp op = SendOp::from(*request);
    error = prepare(*request, op);
    if (error == 0 && send_queue.full()) error = ENOMEM;
    if (error != 0) break;
    submit(op);
  }
  end_post();
  if (error != 0) *bad = request;
  return error;
}

/// Mode null: what the device itself costs is next to nothing.
int Qp::post_send_null(ibv_send_wr* request, ibv_send_wr** bad) noexcept {
  send_queue.lock.lock_favoured();
  int error = state() == IBV_QPS_RTS ? 0 : EINVAL;
  for (; error == 0 && request != nullptr; request = request->next) {
    if (request->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD ||
        static_cast<std::uint32_t>(request->num_sge) > cap_.max_send_sge) {
      error = EINVAL;
      break;
    }
    if (send_queue.full()) {
      error = ENOMEM;
      break;
    }
    send_queue.count_one();
    if ((request->send_flags & IBV_SEND_SIGNALED) != 0 || signal_all_) complete_null(*request);
  }
  send_queue.lock.unlock();
  if (error != 0) *bad = request;
  return error;
}

/// Apart, so that the loop above needs no room for it.
[[gnu::noinline]] void Qp::complete_null(const ibv_send_wr& request) noexcept {
  SendOp op{};
  op.wr_id = request.wr_id;
  op.opcode = static_cast<std::uint8_t>(request.opcode);
  op.flags = IBV_SEND_SIGNALED;
  op.sq_count = send_queue.posted();
  std::uint32_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) bytes += request.sg_list[i].length;
  complete(op, IBV_WC_SUCCESS, bytes);
}

}  // namespace gdrperf::softnic
