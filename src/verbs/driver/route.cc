// ibv_post_send() for QPs that take requests by ibv_wr_*(3) alone.
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/verbs/compat.h"
#include "gdrperf/verbs/driver_qp.h"
#include "verbs/driver/maker_functions.h"

namespace gdrperf::verbs {

/// As mlx5dv.h has it, up to the function that names a DC target.
struct DcRequests {
  std::uint64_t comp_mask;
  void (*set_dc_address)(DcRequests*, ibv_ah*, std::uint32_t, std::uint64_t);
};

struct DriverRoute::State {
  ibv_qp* qp;
  ibv_qp_ex* requests;
  DcRequests* dc;  ///< null: SRD
  ibv_ah* handle;
  std::uint32_t number;
  int (*post)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);  ///< what stood there before
};

namespace {

constexpr int kMostPieces = 64;

void put_operation(ibv_qp_ex* requests, const ibv_send_wr& wr) {
  switch (wr.opcode) {
    case IBV_WR_SEND: return ibv_wr_send(requests);
    case IBV_WR_SEND_WITH_IMM: return ibv_wr_send_imm(requests, wr.imm_data);
    case IBV_WR_RDMA_WRITE: return ibv_wr_rdma_write(requests, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return ibv_wr_rdma_write_imm(requests, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data);
    case IBV_WR_RDMA_READ: return ibv_wr_rdma_read(requests, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return ibv_wr_atomic_fetch_add(requests, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add);
    default:
      return ibv_wr_atomic_cmp_swp(requests, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add,
                                   wr.wr.atomic.swap);
  }
}

void put_data(ibv_qp_ex* requests, const ibv_send_wr& wr) {
  const auto pieces = static_cast<std::size_t>(wr.num_sge);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return ibv_wr_set_sge_list(requests, pieces, wr.sg_list);
  std::array<ibv_data_buf, kMostPieces> inlined;
  for (std::size_t i = 0; i < pieces; ++i)
    inlined[i] = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(wr.sg_list[i].addr)), wr.sg_list[i].length};
  ibv_wr_set_inline_data_list(requests, pieces, inlined.data());
}

int post_by_requests(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  const auto& route = *static_cast<const DriverRoute::State*>(qp->qp_context);
  ibv_qp_ex* const requests = route.requests;
  ibv_wr_start(requests);
  for (const ibv_send_wr* wr = first; wr != nullptr; wr = wr->next) {
    requests->wr_id = wr->wr_id;
    requests->wr_flags = wr->send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    put_operation(requests, *wr);
    if (route.dc != nullptr)
      route.dc->set_dc_address(route.dc, route.handle, route.number, kDcKey);
    else
      ibv_wr_set_ud_addr(requests, route.handle, route.number, kQkey);
    put_data(requests, *wr);
  }
  const int error = ibv_wr_complete(requests);
  if (error != 0) *bad = first;
  return error;
}

}  // namespace

DriverRoute::DriverRoute(ibv_qp* qp, DriverKind kind, ibv_ah* handle, std::uint32_t number)
    : state_(new State{qp, ::ibv_qp_to_qp_ex(qp), nullptr, handle, number, qp->context->ops.post_send}) {
  const auto refuse = [qp](const char* call) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{}: {} gives no way to post requests", ::ibv_get_device_name(qp->context->device), call));
  };
  if (state_->requests == nullptr) refuse("ibv_qp_to_qp_ex");
  if (kind == DriverKind::kDc) {
    const auto of_mlx5 = maker_function<DcRequests*(ibv_qp_ex*)>("libmlx5.so.1", "mlx5dv_qp_ex_from_ibv_qp_ex");
    state_->dc = of_mlx5 == nullptr ? nullptr : of_mlx5(state_->requests);
    if (state_->dc == nullptr) refuse("mlx5dv_qp_ex_from_ibv_qp_ex");
  }
  qp->qp_context = state_.get();
  qp->context->ops.post_send = post_by_requests;
}

DriverRoute::~DriverRoute() {
  if (state_->post != post_by_requests) state_->qp->context->ops.post_send = state_->post;
}

}  // namespace gdrperf::verbs
