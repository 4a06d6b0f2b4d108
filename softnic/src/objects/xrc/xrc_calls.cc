#include "objects/xrc/xrc_calls.h"

#include <cerrno>

#include "objects/attributes/calls.h"
#include "objects/queues/failure.h"
#include "objects/queues/guarded.h"
#include "objects/queues/qp.h"
#include "objects/xrc/xrc.h"

namespace gdrperf::softnic {
namespace {

Context& open_context(ibv_context* context) {
  Context& ours = Context::of(context);
  if (!ours.alive()) throw VerbsFailure{EINVAL};
  return ours;
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, const ibv_xrcd_init_attr& attr) {
  return guarded([&]() -> ibv_xrcd* { return new Xrcd(open_context(context), attr); });
}

int close_xrcd(ibv_xrcd* xrcd) {
  if (!Context::of(xrcd->context).alive()) return 0;
  Xrcd& ours = Xrcd::of(xrcd);
  if (ours.users.load() != 0 || ours.pd.users.load() != 0) return EBUSY;
  delete &ours;
  return 0;
}

ibv_srq* make_srq_ex(ibv_context* context, ibv_srq_init_attr_ex& attr) {
  return guarded([&]() -> ibv_srq* {
    open_context(context);
    constexpr std::uint32_t kParts = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const bool typed = (attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
    if (!typed || attr.srq_type != IBV_SRQT_XRC || (attr.comp_mask & ~(kParts | IBV_SRQ_INIT_ATTR_TYPE)) != 0) {
      throw VerbsFailure{EOPNOTSUPP};
    }
    if ((attr.comp_mask & kParts) != kParts || attr.pd == nullptr || attr.xrcd == nullptr || attr.cq == nullptr ||
        attr.pd->context != context || attr.xrcd->context != context || attr.cq->context != context) {
      throw VerbsFailure{EINVAL};
    }
    check_srq_request(attr.attr);
    const ibv_srq_init_attr basic{attr.srq_context, attr.attr};
    auto* srq = new XrcSrq(Pd::of(attr.pd), Xrcd::of(attr.xrcd), Cq::of(attr.cq), basic);
    attr.attr = srq->attributes;
    return srq;
  });
}

int get_srq_num(ibv_srq* srq, std::uint32_t& number) {
  const XrcSrq* const ours = XrcSrq::of(srq);
  if (ours == nullptr) return EINVAL;
  number = ours->number();
  return 0;
}

ibv_qp* open_xrc_qp(ibv_context* context, const ibv_qp_open_attr& attr) {
  return guarded([&]() -> ibv_qp* {
    Context& owner = open_context(context);
    constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    if ((attr.comp_mask & kNeeded) != kNeeded || attr.xrcd == nullptr || attr.qp_type != IBV_QPT_XRC_RECV)
      throw VerbsFailure{EINVAL};
    Qp* found = nullptr;
    if (qpn_block(attr.qp_num) == owner.process.block()) {
      owner.process.with_qp(qpn_index(attr.qp_num), [&](LocalQp& it) {
        Qp& qp = static_cast<Qp&>(it);
        if (&qp.owner == &owner && qp.number() == attr.qp_num && qp.xrc_domain() == Xrcd::of(attr.xrcd).number)
          found = &qp;
      });
    }
    if (found == nullptr) throw VerbsFailure{EINVAL};
    ++found->handles;
    return &found->qp_base;
  });
}

}  // namespace gdrperf::softnic
