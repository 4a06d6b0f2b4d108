#include <cerrno>

#include "memory/copy.h"
#include "objects/attributes/ah.h"
#include "objects/memory/mw.h"
#include "objects/queues/qp.h"

/// The ibv_wr_* interface: requests are built in the slots where they would
/// wait, and executed by wr_complete. The send queue's lock is held from wr_start
/// to wr_complete or wr_abort, across calls, which no analysis follows.
namespace gdrperf::softnic {
namespace {

/// Between wr_start and wr_complete: the slot of the request being built; null
/// when the queue is full (wr_complete then fails as a whole).
SendSlot* begin(ibv_qp_ex* base, ibv_wr_opcode opcode) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendSlot* slot = Qp::of(base).send_queue.add_draft();
  if (slot == nullptr) return nullptr;
  slot->op.wr_id = base->wr_id;
  slot->op.flags = static_cast<std::uint8_t>(base->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE));
  slot->op.opcode = static_cast<std::uint8_t>(opcode);
  return slot;
}

void start(ibv_qp_ex* base) noexcept NO_THREAD_SAFETY_ANALYSIS {
  Qp& qp = Qp::of(base);
  qp.send_queue.lock.lock_favoured();
  qp.send_queue.begin_draft(qp.state() < IBV_QPS_RTS ? EINVAL : 0);
}

/// All or none. The lock stays taken.
int submit_built(Qp& qp) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendQueue& queue = qp.send_queue;
  const std::uint32_t first = queue.posted() + 1;
  const std::uint32_t count = queue.drafted();
  int error = queue.draft_error();
  for (std::uint32_t i = 0; error == 0 && i < count; ++i) error = qp.check(queue.slot(first + i).op);
  for (std::uint32_t i = 0; error == 0 && i < count; ++i) qp.submit_built(queue.slot(first + i).op);
  return error;
}

int complete(ibv_qp_ex* base) noexcept NO_THREAD_SAFETY_ANALYSIS {
  Qp& qp = Qp::of(base);
  const int error = submit_built(qp);
  qp.send_queue.lock.unlock();
  return error;
}

int complete_in_steps(ibv_qp_ex* base) noexcept NO_THREAD_SAFETY_ANALYSIS {
  Qp& qp = Qp::of(base);
  const int error = submit_built(qp);
  qp.end_post();
  return error;
}

int complete_by_ring(ibv_qp_ex* base) noexcept NO_THREAD_SAFETY_ANALYSIS {
  Qp& qp = Qp::of(base);
  const int error = qp.submit_drafts();
  qp.end_post();
  return error;
}

void abort(ibv_qp_ex* base) noexcept NO_THREAD_SAFETY_ANALYSIS { Qp::of(base).send_queue.lock.unlock(); }

void remote(ibv_qp_ex* base, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address,
            std::uint32_t imm) noexcept {
  SendSlot* slot = begin(base, opcode);
  if (slot == nullptr) return;
  slot->op.rkey = rkey;
  slot->op.remote_addr = address;
  slot->op.imm = imm;
}

void rdma_write(ibv_qp_ex* base, std::uint32_t rkey, std::uint64_t address) noexcept {
  remote(base, IBV_WR_RDMA_WRITE, rkey, address, 0);
}
void rdma_write_imm(ibv_qp_ex* base, std::uint32_t rkey, std::uint64_t address, __be32 imm) noexcept {
  remote(base, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, imm);
}
void rdma_read(ibv_qp_ex* base, std::uint32_t rkey, std::uint64_t address) noexcept {
  remote(base, IBV_WR_RDMA_READ, rkey, address, 0);
}
void send(ibv_qp_ex* base) noexcept { remote(base, IBV_WR_SEND, 0, 0, 0); }
void send_imm(ibv_qp_ex* base, __be32 imm) noexcept {
  remote(base, IBV_WR_SEND_WITH_IMM, 0, 0, imm);
}
void send_inv(ibv_qp_ex* base, std::uint32_t rkey) noexcept {
  remote(base, IBV_WR_SEND_WITH_INV, 0, 0, rkey);
}
void local_inv(ibv_qp_ex* base, std::uint32_t rkey) noexcept {
  remote(base, IBV_WR_LOCAL_INV, 0, 0, rkey);
}
void build_bind(ibv_qp_ex* base, ibv_mw* mw, std::uint32_t rkey,
                const ibv_mw_bind_info* info) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendSlot* slot = begin(base, IBV_WR_BIND_MW);
  if (slot == nullptr) return;
  if (const int error = fill_bind(slot->op, mw, rkey, *info, 0); error != 0) Qp::of(base).send_queue.spoil_draft(error);
}
void compare_swap(ibv_qp_ex* base, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                  std::uint64_t swap) noexcept {
  SendSlot* slot = begin(base, IBV_WR_ATOMIC_CMP_AND_SWP);
  if (slot == nullptr) return;
  slot->op.rkey = rkey;
  slot->op.remote_addr = address;
  slot->op.compare_add = compare;
  slot->op.swap = swap;
}
void fetch_add(ibv_qp_ex* base, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) noexcept {
  SendSlot* slot = begin(base, IBV_WR_ATOMIC_FETCH_AND_ADD);
  if (slot == nullptr) return;
  slot->op.rkey = rkey;
  slot->op.remote_addr = address;
  slot->op.compare_add = add;
}

void set_ud_addr(ibv_qp_ex* base, ibv_ah* handle, std::uint32_t qpn,
                 std::uint32_t qkey) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendSlot* slot = Qp::of(base).send_queue.draft();
  if (slot != nullptr) address(slot->op, *handle, qpn, qkey);
}

void set_xrc_srqn(ibv_qp_ex* base, std::uint32_t number) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendSlot* slot = Qp::of(base).send_queue.draft();
  if (slot != nullptr) set_srq_number(slot->op, number);
}

void set_sge_list(ibv_qp_ex* base, std::size_t count, const ibv_sge* list) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendQueue& queue = Qp::of(base).send_queue;
  SendSlot* slot = queue.draft();
  if (slot == nullptr) return;
  if (count > queue.limits().max_send_sge) {
    queue.spoil_draft(EINVAL);
    return;
  }
  slot->op.num_sge = static_cast<std::uint16_t>(count);
  for (std::size_t i = 0; i < count; ++i) slot->sges[i] = list[i];
}
void set_sge(ibv_qp_ex* base, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) noexcept {
  const ibv_sge sge{address, length, lkey};
  set_sge_list(base, 1, &sge);
}

void set_inline_data_list(ibv_qp_ex* base, std::size_t count,
                          const ibv_data_buf* list) noexcept NO_THREAD_SAFETY_ANALYSIS {
  SendQueue& queue = Qp::of(base).send_queue;
  SendSlot* slot = queue.draft();
  if (slot == nullptr) return;
  auto* data = reinterpret_cast<std::uint8_t*>(&slot->sges[1]);
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].length > queue.limits().max_inline_data - length) {
      queue.spoil_draft(EINVAL);
      return;
    }
    const Piece piece{data + length, list[i].length, nullptr};
    if (list[i].length > 0) copy_pieces_from(static_cast<const std::uint8_t*>(list[i].addr), &piece, 1);
    length += list[i].length;
  }
  slot->op.flags |= IBV_SEND_INLINE;
  slot->op.num_sge = 1;
  slot->sges[0] = {reinterpret_cast<std::uint64_t>(data), static_cast<std::uint32_t>(length), 0};
}
void set_inline_data(ibv_qp_ex* base, void* address, std::size_t length) noexcept {
  const ibv_data_buf buffer{address, length};
  set_inline_data_list(base, 1, &buffer);
}

}  // namespace

void Qp::install_builders() {
  wr_start = &start;
  wr_complete = rings != nullptr   ? &complete_by_ring
                : owner.in_steps() ? &complete_in_steps
                                   : &gdrperf::softnic::complete;
  wr_abort = &abort;
  wr_rdma_write = &rdma_write;
  wr_rdma_write_imm = &rdma_write_imm;
  wr_rdma_read = &rdma_read;
  wr_send = &gdrperf::softnic::send;
  wr_send_imm = &send_imm;
  wr_send_inv = &send_inv;
  wr_local_inv = &local_inv;
  wr_bind_mw = &build_bind;
  wr_atomic_cmp_swp = &compare_swap;
  wr_atomic_fetch_add = &fetch_add;
  if (datagrams()) wr_set_ud_addr = &set_ud_addr;
  if (qp_base.qp_type == IBV_QPT_XRC_SEND) wr_set_xrc_srqn = &set_xrc_srqn;
  wr_set_sge = &set_sge;
  wr_set_sge_list = &set_sge_list;
  wr_set_inline_data = &set_inline_data;
  wr_set_inline_data_list = &set_inline_data_list;
}

}  // namespace gdrperf::softnic
