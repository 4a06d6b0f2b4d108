#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/peers/agent.h"
#include "host/peers/stranger.h"
#include "objects/queues/qp.h"
#include "shared/segment/regions.h"
#include "transport/rc/atomics_lock.h"

/// RC between users: what the target does. All that comes over the socket is
/// taken for an enemy's.
namespace gdrperf::softnic {

/// Strangers::mutex() is held: nothing of this QP changes meanwhile.
Outcome Qp::serve_stranger(const StrangerRequest& request, int memory) noexcept {
  const ibv_qp_state now = state();
  const std::uint8_t gid_index = attr_.ah_attr.grh.sgid_index;
  const bool ready = (now == IBV_QPS_RTR || now == IBV_QPS_RTS || now == IBV_QPS_SQD) && port_is_up() &&
                     transport_->stranger_id() != 0 && transport_->stranger_id() == request.process_id &&
                     attr_.dest_qp_num == request.from_qpn;
  if (!ready || request.gid_index >= kGidsPerPort || kGidKinds[request.gid_index].type != kGidKinds[gid_index].type ||
      kGidKinds[request.gid_index].ipv4 != kGidKinds[gid_index].ipv4) {
    return {Outcome::Kind::kUnreachable};
  }
  const ibv_gid own = device().gid(gid_index);
  if (std::memcmp(&own, &request.gid, sizeof own) != 0) return {Outcome::Kind::kUnreachable};
  if (request.total > kMaxMessageBytes) return refuse_stranger(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return serve_write(request, memory);
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return serve_send(request, memory);
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return serve_read(request, memory);
    default:
      return refuse_stranger(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
}

Outcome Qp::refuse_stranger(ibv_wc_status status, std::uint32_t event) noexcept {
  set_state(IBV_QPS_ERR);
  process.control().qp_failed(index, event);
  return Outcome::failed(status);
}

/// Place in this process of `bytes` from `address` on; 0 when the stranger may not.
std::uint64_t Qp::place_for_stranger(const StrangerRequest& request, unsigned access, std::uint64_t bytes) noexcept {
  const MrShared* region = find_region(process.regions(), request.rkey, pd, access, request.remote_addr, bytes);
  if (region == nullptr) {
    region = find_window(process.regions(), request.rkey, pd, number(), access, request.remote_addr, bytes);
  }
  if (region == nullptr || in_gpu(*region)) return 0;
  return region->addr + (request.remote_addr - region->iova);
}

Outcome Qp::serve_write(const StrangerRequest& request, int memory) noexcept {
  if ((attr_.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0)
    return refuse_stranger(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  std::uint64_t to = 0;
  if (request.total > 0) {
    to = place_for_stranger(request, IBV_ACCESS_REMOTE_WRITE, request.total);
    if (to == 0) return refuse_stranger(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  const bool with_imm = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  RecvCell* receive = with_imm ? receives().ring.take(claim_tag(index, Side::kReceive)) : nullptr;
  if (with_imm && receive == nullptr) return {Outcome::Kind::kNoReceive};
  if (request.total > 0 && store_bytes(memory, to, request.total, 0) != 0) {
    if (receive != nullptr) RecvRing::release(*receive);
    return refuse_stranger(IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
  }
  if (!with_imm) return {};
  Completion completion;
  completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  completion.flags = IBV_WC_WITH_IMM;
  completion.imm = request.imm;
  completion.byte_len = static_cast<std::uint32_t>(request.total);
  return deliver_here(*receive, completion, request);
}

Outcome Qp::serve_send(const StrangerRequest& request, int memory) noexcept {
  RecvCell* receive = receives().ring.take(claim_tag(index, Side::kReceive));
  if (receive == nullptr) return {Outcome::Kind::kNoReceive};
  const TakenReceive taken(receives().ring, *receive);
  Completion completion;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = static_cast<std::uint32_t>(request.total);
  if (request.opcode == IBV_WR_SEND_WITH_IMM) {
    completion.flags = IBV_WC_WITH_IMM;
    completion.imm = request.imm;
  }
  std::uint64_t done = 0;
  for (std::uint32_t i = 0; i < taken.num_sge && done < request.total && completion.status == IBV_WC_SUCCESS; ++i) {
    const ibv_sge& sge = taken.sges[i];
    const std::uint64_t bytes = std::min<std::uint64_t>(sge.length, request.total - done);
    if (bytes == 0) continue;
    const MrShared* region = find_region(process.regions(), sge.lkey, recv_pd, IBV_ACCESS_LOCAL_WRITE, sge.addr, bytes);
    if (region == nullptr || in_gpu(*region) ||
        store_bytes(memory, region->addr + (sge.addr - region->iova), bytes, done) != 0) {
      completion.status = IBV_WC_LOC_PROT_ERR;
    }
    done += bytes;
  }
  if (completion.status == IBV_WC_SUCCESS && done < request.total) completion.status = IBV_WC_LOC_LEN_ERR;
  const Outcome outcome = deliver_here(*receive, completion, request);
  if (completion.status == IBV_WC_SUCCESS) return outcome;
  return refuse_stranger(completion.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR,
                         IBV_EVENT_QP_FATAL);
}

/// READ and atomics; of those `before` goes back.
Outcome Qp::serve_read(const StrangerRequest& request, int memory) noexcept {
  const bool atomic = request.opcode != IBV_WR_RDMA_READ;
  const unsigned access = atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
  const bool wrong = atomic && (request.total != 8 || (request.remote_addr & 7) != 0);
  if ((attr_.qp_access_flags & access) == 0 || attr_.max_dest_rd_atomic == 0 || wrong) {
    return refuse_stranger(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  if (request.total == 0) return {};
  const std::uint64_t from = place_for_stranger(request, access, request.total);
  if (from == 0) return refuse_stranger(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  std::atomic<std::uint64_t>& lock = process.segment().header.atomic_lock;
  if (atomic && !take_atomics_lock(lock, process.id())) return {Outcome::Kind::kUnreachable};
  int error = fetch_bytes(memory, from, request.total);
  if (atomic && error == 0) {
    std::uint64_t word = 0;
    error = ::pread(memory, &word, sizeof word, 0) == sizeof word ? 0 : EIO;
    const bool add = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint64_t after = add ? word + request.compare_add : word == request.compare_add ? request.swap : word;
    if (error == 0 && ::pwrite(memory, &after, sizeof after, 8) == sizeof after)
      error = store_bytes(memory, from, 8, 8);
  }
  if (atomic) leave_atomics_lock(lock, process.id());
  return error == 0 ? Outcome{} : refuse_stranger(IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
}

Outcome Qp::deliver_here(RecvCell& receive, Completion& completion, const StrangerRequest& request) noexcept {
  completion.wr_id = receive.wr_id;
  completion.qpn = number();
  completion.src_qpn = request.from_qpn;
  if (!recv_cq_->push(claim_tag(index, Side::kReceive), completion, &receive, request.solicited != 0)) {
    RecvRing::release(receive);
    return refuse_stranger(IBV_WC_REM_OP_ERR, IBV_EVENT_CQ_ERR);
  }
  if (srq_ != nullptr) {
    RecvRingMemory& ring = *srq_->queue.ring.memory;
    const std::uint32_t limit = ring.limit.load(std::memory_order_relaxed);
    if (limit != 0 && ring.tail.load() - ring.head.load() < limit && ring.limit.exchange(0) != 0) {
      process.control().srq_limit(index);
    }
  }
  return {};
}

}  // namespace gdrperf::softnic
