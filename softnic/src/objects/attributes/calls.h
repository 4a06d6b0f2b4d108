#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

/// Exported functions on our devices, with verbs' own way of
/// reporting: a null pointer and errno, or an errno value.
namespace gdrperf::softnic {

int close_device(ibv_context* context);
ibv_pd* make_pd(ibv_context* context);
int destroy_pd(ibv_pd* pd);
ibv_dm* make_dm(ibv_context* context, const ibv_alloc_dm_attr& attr);
int destroy_dm(ibv_dm* dm);
ibv_mr* make_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access);
int advise_mr(ibv_pd* pd, unsigned advice, std::uint32_t flags, const ibv_sge* pieces, std::uint32_t count);
ibv_mr* make_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access);
ibv_mr* make_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                       unsigned access);
int destroy_mr(ibv_mr* mr);
int change_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access);
ibv_mw* make_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind& bind);
int destroy_mw(ibv_mw* mw);
ibv_comp_channel* make_channel(ibv_context* context);
int destroy_channel(ibv_comp_channel* channel);
ibv_cq* make_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int vector);
ibv_cq_ex* make_cq_ex(ibv_context* context, const ibv_cq_init_attr_ex& attr);
int destroy_cq(ibv_cq* cq);
int resize_cq(ibv_cq* cq, int entries);
int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** user);
/// Throws VerbsFailure.
void check_srq_request(const ibv_srq_attr& attr);
ibv_srq* make_srq(ibv_pd* pd, ibv_srq_init_attr& attr);
int modify_srq(ibv_srq* srq, const ibv_srq_attr& attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr& attr);
int destroy_srq(ibv_srq* srq);
/// Writes what was granted back into attr.cap.
ibv_qp* make_qp(ibv_qp_init_attr_ex& attr);
int modify_qp(ibv_qp* qp, const ibv_qp_attr& attr, int mask);
int set_ece(ibv_qp* qp, const ibv_ece& ece);
int query_ece(ibv_qp* qp, ibv_ece& ece);
int query_qp(ibv_qp* qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init);
int destroy_qp(ibv_qp* qp);
ibv_qp_ex* extended_qp(ibv_qp* qp);
ibv_ah* make_ah(ibv_pd* pd, const ibv_ah_attr& attr);
int destroy_ah(ibv_ah* ah);
/// Sender of a datagram: 0, or -1 and errno.
int sender_of(ibv_context* context, const ibv_wc& completion, const ibv_grh* header, std::uint8_t port,
              ibv_ah_attr& attr);
int get_async_event(ibv_context* context, ibv_async_event& event);

}  // namespace gdrperf::softnic
