#include "objects/attributes/calls.h"

#include <cerrno>
#include <memory>

#include "objects/attributes/ah.h"
#include "objects/attributes/context.h"
#include "objects/queues/cq.h"
#include "objects/memory/device_memory.h"
#include "objects/memory/domains.h"
#include "mlx5/nic.h"
#include "objects/queues/guarded.h"
#include "objects/memory/mr.h"
#include "objects/memory/mw.h"
#include "objects/queues/qp.h"
#include "objects/queues/srq.h"
#include "objects/xrc/xrc.h"

namespace gdrperf::softnic {
namespace {

Context& living(ibv_context* context) {
  Context& ours = Context::of(context);
  // Inherited over fork: its queues and its thread are the parent's.
  if (!ours.alive()) throw VerbsFailure{EINVAL};
  return ours;
}

bool dead(ibv_context* context) { return !Context::of(context).alive(); }

constexpr std::uint64_t kUdOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUcOps = kUdOps | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint64_t kRcOps = kUcOps | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;

/// Operations that may be built for such a QP; 0 for a type that the device does not have.
std::uint64_t send_ops(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND: return kRcOps;
    case IBV_QPT_UC: return kUcOps;
    case IBV_QPT_UD: return kUdOps;
    default: return 0;
  }
}

void check_qp_request(const Device& device, const ibv_qp_init_attr_ex& attr) {
  if (const int error = device.call_fault("create_qp"); error != 0) throw VerbsFailure{error};
  constexpr std::uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  const std::uint32_t known = is_xrc(attr.qp_type) ? kKnown | IBV_QP_INIT_ATTR_XRCD : kKnown;
  const bool known_type = send_ops(attr.qp_type) != 0 || attr.qp_type == IBV_QPT_XRC_RECV;
  if ((attr.comp_mask & ~known) != 0 || !known_type) throw VerbsFailure{EOPNOTSUPP};
  const std::uint32_t flags = (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attr.create_flags : 0;
  const std::uint32_t known_flags = attr.qp_type == IBV_QPT_UD ? std::uint32_t{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB} : 0;
  if ((flags & ~known_flags) != 0) throw VerbsFailure{EOPNOTSUPP};
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && (attr.send_ops_flags & ~send_ops(attr.qp_type)) != 0) {
    throw VerbsFailure{EOPNOTSUPP};
  }
  // Objects of one context go together.
  const ibv_context* context = attr.pd->context;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr || attr.send_cq->context != context ||
      attr.recv_cq->context != context || (attr.srq != nullptr && attr.srq->context != context)) {
    throw VerbsFailure{EINVAL};
  }
  const ibv_qp_cap& cap = attr.cap;
  if (cap.max_send_wr > kMaxQpWr || cap.max_send_sge > kMaxSge || cap.max_inline_data > kMaxInline) {
    throw VerbsFailure{EINVAL};
  }
  if (attr.srq == nullptr && (cap.max_recv_wr > kMaxQpWr || cap.max_recv_sge > kMaxSge)) {
    throw VerbsFailure{EINVAL};
  }
}

/// With mlx5=on: RC and UC have rings of its format. What was granted is written to `attr`.
std::unique_ptr<mlx5::WorkQueues> lay_out_rings(Context& owner, ibv_qp_init_attr_ex& attr) {
  if (owner.nic == nullptr || (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC)) return nullptr;
  auto rings = mlx5::WorkQueues::of_qp(owner.nic->pages, attr.cap, attr.srq == nullptr);
  if (rings == nullptr) throw VerbsFailure{ENOMEM};
  return rings;
}

}  // namespace

int close_device(ibv_context* context) {
  if (!dead(context)) delete &Context::of(context);
  return 0;
}

ibv_pd* make_pd(ibv_context* context) {
  return guarded([&]() -> ibv_pd* {
    Context& owner = living(context);
    auto pd = std::make_unique<Pd>();
    pd->context = context;
    pd->number = owner.process.next_pd.fetch_add(1);
    pd->handle = pd->number;
    return pd.release();
  });
}

int destroy_pd(ibv_pd* pd) {
  if (dead(pd->context)) return 0;
  auto* ours = static_cast<Pd*>(pd);
  if (ours->base != nullptr) {
    destroy_parent_domain(*ours);
    return 0;
  }
  if (ours->users.load() != 0) return EBUSY;
  if (mlx5::Nic* const nic = Context::of(pd->context).nic.get(); nic != nullptr) {
    const MutexLock guard(nic->mutex);
    nic->pds.erase(ours->number);
  }
  delete ours;
  return 0;
}

ibv_mr* make_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return guarded([&]() -> ibv_mr* {
    living(pd->context);
    return register_memory(Pd::of(pd), address, length, iova, access);
  });
}

ibv_mr* make_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                       unsigned access) {
  return guarded([&]() -> ibv_mr* {
    living(pd->context);
    return register_dmabuf(Pd::of(pd), offset, length, iova, fd, access);
  });
}

int destroy_mr(ibv_mr* mr) {
  return dead(mr->context) ? 0 : deregister_memory(static_cast<Mr*>(mr));
}

// A forked child may have some as well: it is memory, and in no table of the parent's.
ibv_dm* make_dm(ibv_context* context, const ibv_alloc_dm_attr& attr) {
  return guarded([&]() -> ibv_dm* { return new DeviceMemory(context, attr); });
}

int destroy_dm(ibv_dm* dm) {
  delete &DeviceMemory::of(dm);
  return 0;
}

ibv_mr* make_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
  return guarded([&]() -> ibv_mr* {
    living(pd->context);
    return DeviceMemory::of(dm).make_region(Pd::of(pd), offset, length, access);
  });
}

int advise_mr(ibv_pd* pd, unsigned advice, std::uint32_t flags, const ibv_sge* pieces, std::uint32_t count) {
  if (dead(pd->context) || advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
      (flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || count == 0) {
    return EINVAL;
  }
  return check_advised(Pd::of(pd), pieces, count);
}

ibv_mw* make_mw(ibv_pd* pd, ibv_mw_type type) {
  return guarded([&]() -> ibv_mw* {
    living(pd->context);
    return allocate_window(Pd::of(pd), type);
  });
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind& bind) {
  return dead(mw->context) ? EINVAL : bind_window(qp, Mw::of(mw), bind);
}

int destroy_mw(ibv_mw* mw) {
  if (!dead(mw->context)) free_window(&Mw::of(mw));
  return 0;
}

int change_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  int error = EINVAL;
  if (!dead(mr->context)) {
    // Programs leave anything in what they do not ask to be changed.
    Pd* const other = (flags & IBV_REREG_MR_CHANGE_PD) != 0 && pd != nullptr ? &Pd::of(pd) : nullptr;
    error = reregister_memory(*static_cast<Mr*>(mr), flags, other, address, length, static_cast<unsigned>(access));
  }
  if (error == 0) return 0;
  errno = error;
  return IBV_REREG_MR_ERR_INPUT;
}

ibv_comp_channel* make_channel(ibv_context* context) {
  return guarded([&]() -> ibv_comp_channel* { return new Channel(living(context)); });
}

int destroy_channel(ibv_comp_channel* channel) {
  if (dead(channel->context)) return 0;
  if (channel->refcnt != 0) return EBUSY;
  delete static_cast<Channel*>(channel);
  return 0;
}

ibv_cq* make_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int vector) {
  return guarded([&]() -> ibv_cq* {
    Context& owner = living(context);
    if (entries <= 0 || static_cast<std::uint32_t>(entries) > kMaxCqe || vector < 0 ||
        vector >= context->num_comp_vectors) {
      throw VerbsFailure{EINVAL};
    }
    auto cq = std::make_unique<Cq>(owner, static_cast<std::uint32_t>(entries), user, channel);
    if (owner.nic != nullptr) cq->lay_out_cqes();
    return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(cq.release()));
  });
}

ibv_cq_ex* make_cq_ex(ibv_context* context, const ibv_cq_init_attr_ex& attr) {
  return guarded([&]() -> ibv_cq_ex* {
    Context& owner = living(context);
    constexpr std::uint32_t kFlags =
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    constexpr std::uint64_t kWcFlags = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    const bool unknown =
        (attr.wc_flags & ~kWcFlags) != 0 ||
        (attr.comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD}) != 0 ||
        ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (attr.flags & ~kFlags) != 0);
    if (unknown) throw VerbsFailure{EOPNOTSUPP};
    if (attr.cqe == 0 || attr.cqe > kMaxCqe ||
        attr.comp_vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) {
      throw VerbsFailure{EINVAL};
    }
    auto cq = std::make_unique<Cq>(owner, attr.cqe, attr.cq_context, attr.channel);
    cq->enable_extended_poll(attr.wc_flags);
    if (owner.nic != nullptr) {
      cq->lay_out_cqes();
      cq->poll_by_cqes();
    }
    return cq.release();
  });
}

int destroy_cq(ibv_cq* cq) {
  if (dead(cq->context)) return 0;
  Cq& ours = Cq::of(cq);
  if (ours.users.load() != 0) return EBUSY;
  ours.owner.drop_events(cq);
  delete &ours;
  return 0;
}

int resize_cq(ibv_cq* cq, int entries) {
  if (dead(cq->context) || entries <= 0) return EINVAL;
  Cq& ours = Cq::of(cq);
  return ours.cqes != nullptr ? ours.resize_cqes(static_cast<std::uint32_t>(entries))
                              : ours.resize(static_cast<std::uint32_t>(entries));
}

int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** user) {
  EventSource* found = nullptr;
  const int error =
      dead(channel->context) ? EINVAL : static_cast<Channel*>(channel)->next_event(found);
  if (error != 0) {
    errno = error;
    return -1;
  }
  Cq& raised = *static_cast<Cq*>(found);
  *cq = reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(&raised));
  *user = raised.cq_context;
  return 0;
}

void check_srq_request(const ibv_srq_attr& attr) {
  if (attr.max_wr == 0 || attr.max_wr > kMaxSrqWr || attr.max_sge > kMaxSge) throw VerbsFailure{EINVAL};
}

ibv_srq* make_srq(ibv_pd* pd, ibv_srq_init_attr& attr) {
  return guarded([&]() -> ibv_srq* {
    living(pd->context);
    check_srq_request(attr.attr);
    auto srq = std::make_unique<Srq>(Pd::of(pd), attr);
    if (Context::of(pd->context).nic != nullptr) srq->lay_out_ring();
    attr.attr = srq->attributes;
    return srq.release();
  });
}

int modify_srq(ibv_srq* srq, const ibv_srq_attr& attr, int mask) {
  if (dead(srq->context)) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & ~IBV_SRQ_LIMIT) != 0) return EINVAL;
  Srq& ours = Srq::of(srq);
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    if (attr.srq_limit > ours.attributes.max_wr) return EINVAL;
    ours.limit_set = attr.srq_limit != 0;
    ours.queue.ring.memory->limit.store(attr.srq_limit);
  }
  return 0;
}

int query_srq(ibv_srq* srq, ibv_srq_attr& attr) {
  if (dead(srq->context)) return EINVAL;
  attr = Srq::of(srq).attributes;
  attr.srq_limit = Srq::of(srq).queue.ring.memory->limit.load();
  return 0;
}

int destroy_srq(ibv_srq* srq) {
  if (dead(srq->context)) return 0;
  Srq& ours = Srq::of(srq);
  if (ours.users.load() != 0) return EBUSY;
  Context::of(srq->context).drop_events(srq);
  delete &ours;
  return 0;
}

ibv_qp* make_qp(ibv_qp_init_attr_ex& attr) {
  return guarded([&]() -> ibv_qp* {
    ibv_qp_init_attr_ex full = attr;
    if (is_xrc(attr.qp_type)) complete_xrc_request(full);
    if (full.pd == nullptr) throw VerbsFailure{EINVAL};
    Context& owner = living(full.pd->context);
    check_qp_request(owner.device, full);
    const bool builders = (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    auto* qp = new Qp(Pd::of(full.pd), full, builders, lay_out_rings(owner, full));
    attr.cap = qp->limits();
    return &qp->qp_base;
  });
}

int modify_qp(ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  const int error = dead(qp->context) ? EINVAL : Qp::of(qp).modify(attr, mask);
  // It is the answer that counts, but many programs print errno.
  if (error != 0) errno = error;
  return error;
}

int set_ece(ibv_qp* qp, const ibv_ece& ece) { return dead(qp->context) ? EINVAL : Qp::of(qp).set_ece(ece); }

int query_ece(ibv_qp* qp, ibv_ece& ece) { return dead(qp->context) ? EINVAL : Qp::of(qp).query_ece(ece); }

int query_qp(ibv_qp* qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) {
  if (dead(qp->context)) return EINVAL;
  Qp::of(qp).query(attr, mask, init);
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  if (dead(qp->context)) return 0;
  Qp& ours = Qp::of(qp);
  if (ours.datagrams() && ours.process.groups().any_of(ours.index)) return EBUSY;
  if (--ours.handles == 0) delete &ours;
  return 0;
}

ibv_qp_ex* extended_qp(ibv_qp* qp) {
  Qp& ours = Qp::of(qp);
  return ours.wr_start != nullptr ? &ours : nullptr;
}

ibv_ah* make_ah(ibv_pd* pd, const ibv_ah_attr& attr) {
  return guarded([&]() -> ibv_ah* {
    living(pd->context);
    return create_address(Pd::of(pd), attr);
  });
}

int destroy_ah(ibv_ah* ah) {
  if (!dead(ah->context)) destroy_address(ah);
  return 0;
}

int sender_of(ibv_context* context, const ibv_wc& completion, const ibv_grh* header, std::uint8_t port,
              ibv_ah_attr& attr) {
  const int error =
      dead(context) ? EINVAL : address_of_sender(Context::of(context).device, completion, header, port, attr);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int get_async_event(ibv_context* context, ibv_async_event& event) {
  const int error = dead(context) ? EINVAL : Context::of(context).next_event(event);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace gdrperf::softnic
