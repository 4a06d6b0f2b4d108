#include "gdrperf/verbs/xrc.h"

#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"

namespace gdrperf::verbs {
namespace {

Error no_xrc(const char* call, int error, ibv_context* context) {
  return call_error(
      call, error, ::ibv_get_device_name(context->device),
      fmt::format("the device or its driver has no XRC: {} rc has the same tests", flag<&TestSpec::transport>()));
}

}  // namespace

void detail::XrcDomainDeleter::operator()(ibv_xrcd* domain) const noexcept { ibv_close_xrcd(domain); }

XrcDomain make_xrc_domain(ibv_context* context) {
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  XrcDomain domain(ibv_open_xrcd(context, &attr));
  if (!domain) throw no_xrc("ibv_open_xrcd", errno, context);
  return domain;
}

Srq make_xrc_srq(ibv_pd* pd, ibv_xrcd* domain, ibv_cq* cq, std::uint32_t receives, int sges) {
  ibv_srq_init_attr_ex attr{};
  attr.attr.max_wr = receives;
  attr.attr.max_sge = static_cast<std::uint32_t>(sges);
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = pd;
  attr.xrcd = domain;
  attr.cq = cq;
  Srq srq(ibv_create_srq_ex(pd->context, &attr));
  if (!srq) throw no_xrc("ibv_create_srq_ex(XRC)", errno, pd->context);
  return srq;
}

std::uint32_t srq_number(ibv_srq* srq) {
  std::uint32_t number = 0;
  const int error = ibv_get_srq_num(srq, &number);
  if (error != 0) throw no_xrc("ibv_get_srq_num", error, srq->context);
  return number;
}

Qp make_xrc_sender(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining) {
  Qp qp;
  const auto create = [&](ibv_qp_init_attr& granted) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = granted.send_cq;
    wanted.cap = granted.cap;
    wanted.cap.max_recv_wr = wanted.cap.max_recv_sge = 0;
    wanted.qp_type = IBV_QPT_XRC_SEND;
    wanted.sq_sig_all = granted.sq_sig_all;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = pd;
    qp.reset(ibv_create_qp_ex(pd->context, &wanted));
    granted.cap.max_inline_data = wanted.cap.max_inline_data;
    return qp != nullptr;
  };
  if (!create_qp(attr, inlining, create)) throw_qp_creation(::ibv_get_device_name(pd->context->device), errno, attr);
  return qp;
}

Qp make_xrc_responder(ibv_context* context, ibv_xrcd* domain) {
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_XRC_RECV;
  wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  wanted.xrcd = domain;
  Qp qp(ibv_create_qp_ex(context, &wanted));
  if (!qp) throw no_xrc("ibv_create_qp_ex(XRC_RECV)", errno, context);
  return qp;
}

}  // namespace gdrperf::verbs
