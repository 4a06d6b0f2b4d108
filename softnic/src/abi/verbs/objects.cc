#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "abi/verbs/abi.h"
#include "abi/libc/forward.h"
#include "objects/attributes/calls.h"
#include "objects/attributes/context.h"
#include "objects/attributes/multicast.h"

/// Exported functions about the objects of a device, each one: ours, or on to
/// the real library.
using namespace gdrperf::softnic;

// verbs.h hides these behind macros for its inline wrappers.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

extern "C" {
#pragma GCC visibility push(default)

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (is_soft(context)) return make_pd(context);
  SOFTNIC_FORWARD_POINTER(ibv_alloc_pd, context);
}

int ibv_dealloc_pd(ibv_pd* pd) {
  if (is_soft(pd->context)) return destroy_pd(pd);
  SOFTNIC_FORWARD_ERROR(ibv_dealloc_pd, pd);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  if (is_soft(pd->context)) {
    return make_mr(pd, address, length, reinterpret_cast<std::uint64_t>(address),
                   static_cast<unsigned>(access));
  }
  SOFTNIC_FORWARD_POINTER(ibv_reg_mr, pd, address, length, access);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  if (is_soft(pd->context)) return make_mr(pd, address, length, iova, static_cast<unsigned>(access));
  SOFTNIC_FORWARD_POINTER(ibv_reg_mr_iova, pd, address, length, iova, access);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned access) {
  if (is_soft(pd->context)) return make_mr(pd, address, length, iova, access);
  SOFTNIC_FORWARD_POINTER(ibv_reg_mr_iova2, pd, address, length, iova, access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, int access) {
  if (is_soft(pd->context)) {
    return make_dmabuf_mr(pd, offset, length, iova, fd, static_cast<unsigned>(access));
  }
  SOFTNIC_FORWARD_POINTER(ibv_reg_dmabuf_mr, pd, offset, length, iova, fd, access);
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (is_soft(mr->context)) return change_mr(mr, flags, pd, address, length, access);
  const auto real = SOFTNIC_REAL(ibv_rereg_mr);
  if (real != nullptr) return real(mr, flags, pd, address, length, access);
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

int ibv_dereg_mr(ibv_mr* mr) {
  if (is_soft(mr->context)) return destroy_mr(mr);
  SOFTNIC_FORWARD_ERROR(ibv_dereg_mr, mr);
}

void ibv_unimport_pd(ibv_pd* pd) {
  if (is_soft(pd->context)) return;
  if (const auto real = SOFTNIC_REAL(ibv_unimport_pd)) real(pd);
}

void ibv_unimport_mr(ibv_mr* mr) {
  if (is_soft(mr->context)) return;
  if (const auto real = SOFTNIC_REAL(ibv_unimport_mr)) real(mr);
}

void ibv_unimport_dm(ibv_dm* dm) {
  if (is_soft(dm->context)) return;
  if (const auto real = SOFTNIC_REAL(ibv_unimport_dm)) real(dm);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (is_soft(context)) return make_channel(context);
  SOFTNIC_FORWARD_POINTER(ibv_create_comp_channel, context);
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (is_soft(channel->context)) return destroy_channel(channel);
  SOFTNIC_FORWARD_ERROR(ibv_destroy_comp_channel, channel);
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                      int vector) {
  if (is_soft(context)) return make_cq(context, entries, user, channel, vector);
  SOFTNIC_FORWARD_POINTER(ibv_create_cq, context, entries, user, channel, vector);
}

int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (is_soft(cq->context)) return resize_cq(cq, entries);
  SOFTNIC_FORWARD_ERROR(ibv_resize_cq, cq, entries);
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (is_soft(cq->context)) return destroy_cq(cq);
  SOFTNIC_FORWARD_ERROR(ibv_destroy_cq, cq);
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** user) {
  if (is_soft(channel->context)) return get_cq_event(channel, cq, user);
  SOFTNIC_FORWARD_MINUS(ibv_get_cq_event, channel, cq, user);
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  if (!is_soft(cq->context)) {
    if (const auto real = SOFTNIC_REAL(ibv_ack_cq_events)) real(cq, count);
    return;
  }
  ::pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  ::pthread_cond_signal(&cq->cond);
  ::pthread_mutex_unlock(&cq->mutex);
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (is_soft(pd->context)) return make_srq(pd, *attr);
  SOFTNIC_FORWARD_POINTER(ibv_create_srq, pd, attr);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if (is_soft(srq->context)) return modify_srq(srq, *attr, mask);
  SOFTNIC_FORWARD_ERROR(ibv_modify_srq, srq, attr, mask);
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (is_soft(srq->context)) return query_srq(srq, *attr);
  SOFTNIC_FORWARD_ERROR(ibv_query_srq, srq, attr);
}

int ibv_destroy_srq(ibv_srq* srq) {
  if (is_soft(srq->context)) return destroy_srq(srq);
  SOFTNIC_FORWARD_ERROR(ibv_destroy_srq, srq);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (is_soft(pd->context)) {
    ibv_qp_init_attr_ex full{};
    std::memcpy(&full, attr, sizeof *attr);
    full.comp_mask = IBV_QP_INIT_ATTR_PD;
    full.pd = pd;
    ibv_qp* qp = make_qp(full);
    if (qp != nullptr) attr->cap = full.cap;
    return qp;
  }
  SOFTNIC_FORWARD_POINTER(ibv_create_qp, pd, attr);
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (is_soft(qp->context)) return modify_qp(qp, *attr, mask);
  SOFTNIC_FORWARD_ERROR(ibv_modify_qp, qp, attr, mask);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (is_soft(qp->context)) return query_qp(qp, *attr, mask, *init);
  SOFTNIC_FORWARD_ERROR(ibv_query_qp, qp, attr, mask, init);
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (is_soft(qp->context)) return destroy_qp(qp);
  SOFTNIC_FORWARD_ERROR(ibv_destroy_qp, qp);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  if (is_soft(qp->context)) return extended_qp(qp);
  SOFTNIC_FORWARD_POINTER(ibv_qp_to_qp_ex, qp);
}

int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  // Only the last byte is promised to come last.
  if (is_soft(qp->context)) return 0;
  const auto real = SOFTNIC_REAL(ibv_query_qp_data_in_order);
  return real != nullptr ? real(qp, opcode, flags) : 0;
}

int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  if (is_soft(qp->context)) return set_ece(qp, *ece);
  SOFTNIC_FORWARD_ERROR(ibv_set_ece, qp, ece);
}

int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  if (is_soft(qp->context)) return query_ece(qp, *ece);
  SOFTNIC_FORWARD_ERROR(ibv_query_ece, qp, ece);
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (is_soft(pd->context)) return make_ah(pd, *attr);
  SOFTNIC_FORWARD_POINTER(ibv_create_ah, pd, attr);
}

int ibv_destroy_ah(ibv_ah* ah) {
  if (is_soft(ah->context)) return destroy_ah(ah);
  SOFTNIC_FORWARD_ERROR(ibv_destroy_ah, ah);
}

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attr) {
  if (is_soft(context)) return sender_of(context, *wc, grh, port, *attr);
  SOFTNIC_FORWARD_MINUS(ibv_init_ah_from_wc, context, port, wc, grh, attr);
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  if (is_soft(pd->context)) {
    ibv_ah_attr attr{};
    return sender_of(pd->context, *wc, grh, port, attr) == 0 ? make_ah(pd, attr) : nullptr;
  }
  SOFTNIC_FORWARD_POINTER(ibv_create_ah_from_wc, pd, wc, grh, port);
}

int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (is_soft(qp->context)) return attach_multicast(qp, *gid);
  SOFTNIC_FORWARD_ERROR(ibv_attach_mcast, qp, gid, lid);
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  if (is_soft(qp->context)) return detach_multicast(qp, *gid);
  SOFTNIC_FORWARD_ERROR(ibv_detach_mcast, qp, gid, lid);
}

#pragma GCC visibility pop
}
