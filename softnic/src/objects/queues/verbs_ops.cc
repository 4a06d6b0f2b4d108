#include "objects/queues/verbs_ops.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "objects/attributes/buffers.h"
#include "objects/attributes/calls.h"
#include "objects/attributes/context.h"
#include "objects/queues/cq.h"
#include "objects/memory/domains.h"
#include "objects/queues/guarded.h"
#include "objects/queues/qp.h"
#include "objects/queues/srq.h"
#include "objects/xrc/xrc_calls.h"

namespace gdrperf::softnic {
namespace {

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) { return Cq::of(cq).poll(count, completions); }

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  Cq::of(cq).arm(solicited_only != 0);
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return Qp::of(qp).post_send(request, bad);
}

int post_send_null(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return Qp::of(qp).post_send_null(request, bad);
}

int post_send_in_steps(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return Qp::of(qp).post_send_in_steps(request, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return Qp::of(qp).post_recv(request, bad);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return Srq::of(srq).queue.post(request, bad);
}

int poll_cq_ring(ibv_cq* cq, int count, ibv_wc* completions) { return Cq::of(cq).poll_ring(count, completions); }

int post_send_ring(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return Qp::of(qp).post_send_ring(request, bad);
}

int post_recv_ring(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return Qp::of(qp).post_recv_ring(request, bad);
}

int post_srq_recv_ring(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return Srq::of(srq).post_ring(request, bad);
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) { return make_mw(pd, type); }

int bind_mw_op(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) { return bind_mw(qp, mw, *bind); }

int dealloc_mw(ibv_mw* mw) { return destroy_mw(mw); }

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  const Device* const own = Context::of(context).device.port_at(port);
  if (own == nullptr) return EINVAL;
  ibv_port_attr full;
  describe_port(*own, full);
  std::memcpy(attr, &full, std::min(size, sizeof full));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  describe_device_ex(Context::of(context).device, *attr, size);
  return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EOPNOTSUPP;
  // Ticks of the clock that stamps completions, where other providers put theirs.
  values->raw_clock = {0, static_cast<long>(monotonic_ns())};
  return 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return make_cq_ex(context, *attr);
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) { return make_qp(*attr); }

/// Programs may post through the function at this moment, when a device follows a changed SOFTNIC: both take requests.
void choose_post_send(Context& context) {
  const auto chosen = context.null_mode()      ? &post_send_null
                      : context.nic != nullptr ? &post_send_ring
                      : context.in_steps()     ? &post_send_in_steps
                                               : &post_send;
  auto& place = context.context.ops.post_send;
  if (place != chosen) __atomic_store_n(&place, chosen, __ATOMIC_RELEASE);
}

void fill_verbs_ops(Context& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.poll_cq = &poll_cq;
  ops.req_notify_cq = &req_notify_cq;
  choose_post_send(context);
  ops.post_recv = &post_recv;
  ops.post_srq_recv = &post_srq_recv;
  if (context.nic != nullptr) {
    ops.poll_cq = &poll_cq_ring;
    ops.post_recv = &post_recv_ring;
    ops.post_srq_recv = &post_srq_recv_ring;
  }
  ops.alloc_mw = &alloc_mw;
  ops.bind_mw = &bind_mw_op;
  ops.dealloc_mw = &dealloc_mw;
  context.alloc_td = [](ibv_context* owner, ibv_td_init_attr* attr) { return make_td(owner, *attr); };
  context.dealloc_td = &destroy_td;
  context.alloc_parent_domain = [](ibv_context* owner, ibv_parent_domain_init_attr* attr) {
    return make_parent_domain(owner, *attr);
  };
  context.alloc_dm = [](ibv_context* owner, ibv_alloc_dm_attr* attr) { return make_dm(owner, *attr); };
  context.free_dm = &destroy_dm;
  context.alloc_null_mr = &make_null_mr;
  context.reg_dm_mr = &make_dm_mr;
  context.advise_mr = [](ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
                         std::uint32_t count) { return advise_mr(pd, advice, flags, pieces, count); };
  context.query_port = &query_port;
  context.query_device_ex = &query_device_ex;
  context.query_rt_values = &query_rt_values;
  context.create_cq_ex = &create_cq_ex;
  context.create_qp_ex = &create_qp_ex;
  context.open_xrcd = [](ibv_context* owner, ibv_xrcd_init_attr* attr) { return open_xrcd(owner, *attr); };
  context.close_xrcd = &close_xrcd;
  context.create_srq_ex = [](ibv_context* owner, ibv_srq_init_attr_ex* attr) { return make_srq_ex(owner, *attr); };
  context.modify_qp_rate_limit = [](ibv_qp* qp, ibv_qp_rate_limit_attr* attr) { return Qp::of(qp).limit_rate(*attr); };
  context.get_srq_num = [](ibv_srq* srq, std::uint32_t* number) { return get_srq_num(srq, *number); };
  context.open_qp = [](ibv_context* owner, ibv_qp_open_attr* attr) { return open_xrc_qp(owner, *attr); };
}

void fill_dead_ops(Context& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.poll_cq = [](ibv_cq*, int, ibv_wc*) { return -1; };
  ops.req_notify_cq = [](ibv_cq*, int) { return EINVAL; };
  ops.post_send = [](ibv_qp*, ibv_send_wr* request, ibv_send_wr** bad) {
    *bad = request;
    return EINVAL;
  };
  ops.post_recv = [](ibv_qp*, ibv_recv_wr* request, ibv_recv_wr** bad) {
    *bad = request;
    return EINVAL;
  };
  ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr* request, ibv_recv_wr** bad) {
    *bad = request;
    return EINVAL;
  };
  context.create_cq_ex = nullptr;
  context.create_qp_ex = nullptr;
}

}  // namespace

ibv_context* open_device(ibv_device* device) {
  return guarded([&] {
    return &(new Context(*soft_device(device), {&fill_verbs_ops, &choose_post_send, &fill_dead_ops}))->context;
  });
}

}  // namespace gdrperf::softnic
