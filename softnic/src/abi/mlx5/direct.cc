#include "abi/mlx5/direct.h"

#include <endian.h>

#include <cerrno>
#include <cstring>

#include "mlx5/nic.h"
#include "objects/attributes/ah.h"
#include "objects/memory/device_memory.h"
#include "objects/queues/cq.h"
#include "objects/queues/qp.h"
#include "objects/queues/srq.h"

namespace gdrperf::softnic {
namespace {

bool has_rings(const ibv_context* context) { return context != nullptr && is_mlx5(context->device); }

int show_qp(ibv_qp* in, mlx5dv_qp& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  Qp& qp = Qp::of(in);
  // Datagrams and XRC.
  if (qp.rings == nullptr) return EOPNOTSUPP;
  const mlx5::WorkQueues& rings = *qp.rings;
  out = {};
  out.dbrec = rings.record->words();
  out.sq.buf = rings.layout.send;
  out.sq.wqe_cnt = rings.layout.send_blocks;
  out.sq.stride = mlx5::kBlockBytes;
  out.rq.buf = rings.layout.receive;
  out.rq.wqe_cnt = rings.layout.receives;
  out.rq.stride = rings.layout.receive_bytes;
  out.bf.reg = rings.reg.page->reg(rings.reg.which);
  out.bf.size = mlx5::kRegisterBuffer;
  return qp.watch_rings();
}

int show_cq(ibv_cq* in, mlx5dv_cq& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  Cq& cq = Cq::of(in);
  const mlx5::CompletionRing& ring = *cq.cqes;
  out = {};
  out.buf = ring.cqes;
  out.dbrec = ring.record->words();
  out.cqe_cnt = 1u << ring.shift;
  out.cqe_size = sizeof(mlx5::Cqe);
  out.cq_uar = ring.page->base();
  out.cqn = cq.index;
  return cq.watch_cqes();
}

int show_srq(ibv_srq* in, mlx5dv_srq& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  Srq& srq = Srq::of(in);
  if (srq.rings == nullptr) return EOPNOTSUPP;
  out = {};
  out.buf = srq.rings->layout.receive;
  out.dbrec = srq.rings->record->words();
  out.stride = srq.rings->layout.receive_bytes;
  out.head = srq.rings->receive_head;
  out.tail = srq.rings->receive_tail;
  return srq.watch_ring();
}

int show_pd(ibv_pd* in, mlx5dv_pd& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  Pd& pd = Pd::of(in);
  mlx5::Nic& nic = *Context::of(in->context).nic;
  const MutexLock guard(nic.mutex);
  nic.pds[pd.number] = &pd;
  out.pdn = pd.number;
  out.comp_mask = 0;
  return 0;
}

int show_dm(ibv_dm* in, mlx5dv_dm& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  DeviceMemory& dm = DeviceMemory::of(in);
  out.buf = dm.memory;
  out.length = dm.length;
  out.comp_mask = 0;
  return 0;
}

/// What a UD WQE would have of it. Programs take the hardware address from there.
int show_ah(ibv_ah* in, mlx5dv_ah& out) {
  if (!has_rings(in->context)) return EOPNOTSUPP;
  Ah& ah = *static_cast<Ah*>(in);
  mlx5_wqe_av vector{};
  static_assert(sizeof vector == sizeof ah.mlx5_vector);
  hardware_address_of(ah.attributes.grh.dgid, vector.rmac);
  vector.fl_mlid = ah.attributes.src_path_bits & 0x7f;
  vector.rlid = htobe16(ah.attributes.dlid);
  vector.tclass = ah.attributes.grh.traffic_class;
  vector.hop_limit = ah.attributes.grh.hop_limit;
  std::memcpy(vector.rgid, ah.attributes.grh.dgid.raw, sizeof vector.rgid);
  std::memcpy(ah.mlx5_vector, &vector, sizeof vector);
  out.av = reinterpret_cast<mlx5_wqe_av*>(ah.mlx5_vector);
  out.comp_mask = 0;
  return 0;
}

}  // namespace

bool is_mlx5(const ibv_device* device) {
  const Device* const ours = soft_device(device);
  return ours != nullptr && ours->config.mlx5;
}

int query_mlx5(ibv_context* context, mlx5dv_context& attributes) {
  if (!has_rings(context)) return EOPNOTSUPP;
  attributes.version = 0;
  attributes.flags = MLX5DV_CONTEXT_FLAGS_CQE_V1;
  const std::uint64_t known = MLX5DV_CONTEXT_MASK_DYN_BFREGS | MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS;
  attributes.comp_mask &= known;
  if ((attributes.comp_mask & MLX5DV_CONTEXT_MASK_DYN_BFREGS) != 0) attributes.max_dynamic_bfregs = 1024;
  if ((attributes.comp_mask & MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS) != 0) attributes.num_lag_ports = 0;
  return 0;
}

int show_rings(mlx5dv_obj& objects, std::uint64_t types) {
  constexpr std::uint64_t kKnown =
      MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_DM | MLX5DV_OBJ_PD | MLX5DV_OBJ_AH;
  if ((types & ~kKnown) != 0) return EOPNOTSUPP;
  int error = 0;
  if (error == 0 && (types & MLX5DV_OBJ_QP) != 0) error = show_qp(objects.qp.in, *objects.qp.out);
  if (error == 0 && (types & MLX5DV_OBJ_CQ) != 0) error = show_cq(objects.cq.in, *objects.cq.out);
  if (error == 0 && (types & MLX5DV_OBJ_SRQ) != 0) error = show_srq(objects.srq.in, *objects.srq.out);
  if (error == 0 && (types & MLX5DV_OBJ_DM) != 0) error = show_dm(objects.dm.in, *objects.dm.out);
  if (error == 0 && (types & MLX5DV_OBJ_PD) != 0) error = show_pd(objects.pd.in, *objects.pd.out);
  if (error == 0 && (types & MLX5DV_OBJ_AH) != 0) error = show_ah(objects.ah.in, *objects.ah.out);
  return error;
}

}  // namespace gdrperf::softnic
