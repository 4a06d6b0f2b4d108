#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

/// XRC's part of what the exported functions do on our devices (calls.h).
namespace gdrperf::softnic {

ibv_xrcd* open_xrcd(ibv_context* context, const ibv_xrcd_init_attr& attr);
int close_xrcd(ibv_xrcd* xrcd);
ibv_srq* make_srq_ex(ibv_context* context, ibv_srq_init_attr_ex& attr);
int get_srq_num(ibv_srq* srq, std::uint32_t& number);
/// A receiving QP once more; ibv_destroy_qp() takes that back.
ibv_qp* open_xrc_qp(ibv_context* context, const ibv_qp_open_attr& attr);

}  // namespace gdrperf::softnic
