#include "gdrperf/verbs/resources.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/base/limits.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/compat.h"

namespace gdrperf::verbs {
namespace {

std::string device_name(ibv_context* context) { return ibv_get_device_name(context->device); }

/// ibv_modify_qp returns errno itself; some providers return -1.
int error_of(int result) { return result > 0 ? result : errno; }

std::string memlock_hint(int error) {
  if (error != ENOMEM && error != EPERM && error != EAGAIN) return {};
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (const std::string space = limit_hint(error); limit.rlim_cur == RLIM_INFINITY && !space.empty()) return space;
  if (limit.rlim_cur == RLIM_INFINITY) {
    return "locked memory is not limited here: memory or the device's own limits ran out";
  }
  return fmt::format(
      "locked memory is limited to {}: raise it with 'ulimit -l unlimited' (or "
      "/etc/security/limits.conf, a container's --ulimit memlock=-1), or use smaller sizes",
      format_size(limit.rlim_cur));
}

const char* type_name(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_UC: return "UC";
    case IBV_QPT_UD: return "UD";
    case IBV_QPT_XRC_SEND: return "XRC";
    case IBV_QPT_DRIVER: return "DC or SRD";
    default: return "RC";
  }
}

std::string other_gid_hint() {
  return fmt::format("the peer's GID may not be reachable from this one: compare the GIDs that "
                     "'gdrperf devices' shows on both hosts and choose with {} and {}",
                     own_flag<&EndSpec::gid_index>(), peer_flag<&EndSpec::gid_index>());
}

/// Attributes that a QP takes on its way to RTR, and to RTS, beside its state.
struct QpMasks {
  int rtr = 0;
  int rts = 0;
};

QpMasks masks_of(ibv_qp_type type) {
  if (type == IBV_QPT_UD) return {0, IBV_QP_SQ_PSN};
  constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_UC) return {kPath, IBV_QP_SQ_PSN};
  constexpr int kAsked = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  constexpr int kAnswers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (type == IBV_QPT_XRC_SEND) return {kPath, kAsked};
  if (type == IBV_QPT_XRC_RECV) return {kPath | kAnswers, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN};
  return {kPath | kAnswers, kAsked};
}

}  // namespace

ibv_ah_attr address_of(const QpPath& path) {
  ibv_ah_attr attr{};
  attr.dlid = path.remote_lid;
  attr.sl = static_cast<std::uint8_t>(path.service_level);
  attr.port_num = path.port;
  if (!path.global) return attr;
  attr.is_global = 1;
  attr.grh.dgid = path.remote_gid;
  attr.grh.sgid_index = path.gid_index;
  attr.grh.hop_limit = static_cast<std::uint8_t>(path.hop_limit);
  attr.grh.flow_label = static_cast<std::uint32_t>(path.flow_label);
  attr.grh.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
  return attr;
}

Pd make_pd(ibv_context* context) {
  Pd pd(ibv_alloc_pd(context));
  if (!pd) throw call_error("ibv_alloc_pd", errno, device_name(context));
  return pd;
}

namespace {

Error no_thread_domain(const char* call, ibv_context* context) {
  return call_error(call, errno, device_name(context),
                    fmt::format("the device has no thread domains: leave {} out", flag<&TestSpec::thread_domain>()));
}

ibv_cq* cq_of_domain(ibv_context* context, int entries, ibv_comp_channel* channel, int vector, ibv_pd* domain) {
#ifdef GDRPERF_HAS_IBV_CQ_INIT_ATTR_EX_PARENT_DOMAIN
  ibv_cq_init_attr_ex attr{};
  attr.cqe = static_cast<std::uint32_t>(entries);
  attr.channel = channel;
  attr.comp_vector = static_cast<std::uint32_t>(vector);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = domain;
  ibv_cq_ex* cq = ibv_create_cq_ex(context, &attr);
  return cq == nullptr ? nullptr : ibv_cq_ex_to_cq(cq);
#else  // rdma-core 29
  (void)context, (void)entries, (void)channel, (void)vector, (void)domain;
  errno = EOPNOTSUPP;
  return nullptr;
#endif
}

}  // namespace

void detail::ThreadDomainDeleter::operator()(ibv_td* domain) const noexcept { ibv_dealloc_td(domain); }

ThreadDomain make_thread_domain(ibv_context* context) {
  ibv_td_init_attr attr{};
  ThreadDomain domain(ibv_alloc_td(context, &attr));
  if (!domain) throw no_thread_domain("ibv_alloc_td", context);
  return domain;
}

Pd make_parent_domain(ibv_pd* pd, ibv_td* domain) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = domain;
  Pd parent(ibv_alloc_parent_domain(pd->context, &attr));
  if (!parent) throw no_thread_domain("ibv_alloc_parent_domain", pd->context);
  return parent;
}

CompletionChannel make_completion_channel(ibv_context* context) {
  CompletionChannel channel(ibv_create_comp_channel(context));
  if (!channel) throw call_error("ibv_create_comp_channel", errno, device_name(context));
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    throw call_error("fcntl(completion channel)", errno, device_name(context));
  }
  return channel;
}

Cq make_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector, ibv_pd* domain) {
  if (vector >= std::max(context->num_comp_vectors, 1)) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("{} {}: {} has {} completion vectors, 0 to {}", flag<&TestSpec::comp_vector>(), vector,
                            device_name(context), context->num_comp_vectors, context->num_comp_vectors - 1));
  }
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) == 0 && attr.max_cqe > 0) entries = std::min(entries, attr.max_cqe);
  Cq cq(domain == nullptr ? ibv_create_cq(context, std::max(entries, 1), nullptr, channel, vector)
                          : cq_of_domain(context, std::max(entries, 1), channel, vector, domain));
  if (!cq) {
    throw call_error(fmt::format("ibv_create_cq({} entries)", entries), errno, device_name(context),
                     fmt::format("fewer QPs ({}) or shallower queues ({}, {}) need a smaller completion queue",
                                 flag<&TestSpec::qps>(), flag<&TestSpec::tx_depth>(), flag<&TestSpec::rx_depth>()));
  }
  return cq;
}

Srq make_srq(ibv_pd* pd, std::uint32_t receives, int sges) {
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = receives;
  attr.attr.max_sge = static_cast<std::uint32_t>(sges);
  Srq srq(ibv_create_srq(pd, &attr));
  if (srq) return srq;
  throw call_error(fmt::format("ibv_create_srq({} receives)", receives), errno, device_name(pd->context),
                   fmt::format("fewer QPs ({}) or receives ({}) need a smaller one; without {} each QP has its own",
                               flag<&TestSpec::qps>(), flag<&TestSpec::rx_depth>(), flag<&TestSpec::srq>()));
}

Mr register_memory(ibv_pd* pd, void* address, std::size_t bytes, int access) {
  Mr mr(ibv_reg_mr(pd, address, bytes, access));
  if (!mr) {
    const int error = errno;
    throw call_error(fmt::format("ibv_reg_mr({})", format_size(bytes)), error, device_name(pd->context),
                     memlock_hint(error));
  }
  return mr;
}

Mr make_null_mr(ibv_pd* pd) {
  Mr mr(ibv_alloc_null_mr(pd));
  if (!mr)
    throw call_error("ibv_alloc_null_mr", errno, device_name(pd->context),
                     fmt::format("the device has no null memory regions: leave {} out", flag<&TestSpec::null_mr>()));
  return mr;
}

ibv_qp_init_attr qp_attr(ibv_qp_type type, ibv_cq* send_cq, ibv_cq* recv_cq, const QpCapacity& capacity) {
  ibv_qp_init_attr attr{};
  attr.send_cq = send_cq;
  attr.recv_cq = recv_cq;
  attr.qp_type = type;
  attr.sq_sig_all = 0;
  attr.cap.max_send_wr = static_cast<std::uint32_t>(capacity.send_wr);
  attr.cap.max_recv_wr = static_cast<std::uint32_t>(capacity.recv_wr);
  attr.cap.max_send_sge = attr.cap.max_recv_sge = static_cast<std::uint32_t>(capacity.sges);
  attr.cap.max_inline_data = static_cast<std::uint32_t>(capacity.inline_bytes);
  return attr;
}

Qp make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining) {
  Qp qp;
  const auto create = [&](ibv_qp_init_attr& granted) {
    qp.reset(ibv_create_qp(pd, &granted));
    return qp != nullptr;
  };
  if (!create_qp(attr, inlining, create)) throw_qp_creation(device_name(pd->context), errno, attr);
  return qp;
}

void throw_qp_creation(std::string_view device, int error, const ibv_qp_init_attr& attr) {
  throw call_error(
      fmt::format("create {} QP (send queue {}, receive queue {}, inline {} B)", type_name(attr.qp_type),
                  attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_inline_data),
      error, device,
      fmt::format("the device may not take queues this deep ({}, {}), inline this large ({}) or so "
                  "many QPs ({}){}; ibv_devinfo -v shows its limits",
                  flag<&TestSpec::tx_depth>(), flag<&TestSpec::rx_depth>(), flag<&TestSpec::inline_bytes>(),
                  flag<&TestSpec::qps>(),
                  attr.qp_type == IBV_QPT_RC
                      ? ""
                      : fmt::format(", or have no {} ({} rc)", type_name(attr.qp_type), flag<&TestSpec::transport>())));
}

void to_init(ibv_qp* qp, int port, int access, int pkey_index) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = static_cast<std::uint16_t>(pkey_index);
  attr.port_num = static_cast<std::uint8_t>(port);
  attr.qp_access_flags = static_cast<unsigned>(access);
  attr.qkey = kQkey;
  const int own = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  const int result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
  if (result != 0) {
    throw call_error("ibv_modify_qp(RESET to INIT)", error_of(result), device_name(qp->context),
                     pkey_index == 0 ? ""
                                     : fmt::format("is there a partition key at index {} ({})?", pkey_index,
                                                   flag<&TestSpec::pkey_index>()));
  }
}

void to_rts(ibv_qp* qp, const QpPath& path) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = mtu_from_bytes(path.mtu_bytes);
  attr.dest_qp_num = path.remote_qpn;
  attr.rq_psn = path.remote_psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(path.max_dest_rd_atomic);
  attr.min_rnr_timer = static_cast<std::uint8_t>(path.min_rnr_timer);
  attr.ah_attr = address_of(path);
  const QpMasks masks = masks_of(qp->qp_type);
  int result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | masks.rtr);
  if (result != 0) {
    throw call_error("ibv_modify_qp(INIT to RTR)", error_of(result), device_name(qp->context), other_gid_hint());
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = static_cast<std::uint8_t>(path.timeout);
  attr.retry_cnt = static_cast<std::uint8_t>(path.retry_count);
  attr.rnr_retry = static_cast<std::uint8_t>(path.rnr_retry);
  attr.sq_psn = path.local_psn;
  attr.max_rd_atomic = static_cast<std::uint8_t>(path.max_rd_atomic);
  result = ibv_modify_qp(qp, &attr, IBV_QP_STATE | masks.rts);
  if (result != 0) {
    throw call_error("ibv_modify_qp(RTR to RTS)", error_of(result), device_name(qp->context));
  }
}

AddressHandle make_address_handle(ibv_pd* pd, const QpPath& path) {
  ibv_ah_attr attr = address_of(path);
  AddressHandle handle(ibv_create_ah(pd, &attr));
  if (!handle) throw call_error("ibv_create_ah", errno, device_name(pd->context), other_gid_hint());
  return handle;
}

void join(ibv_qp* qp, const ibv_gid& group) {
  const int error = ibv_attach_mcast(qp, &group, 0);
  if (error == 0) return;
  throw call_error("ibv_attach_mcast", error_of(error), device_name(qp->context),
                   fmt::format("the device or its driver may have no multicast for this group: leave {} out",
                               flag<&TestSpec::multicast>()));
}

void leave(ibv_qp* qp, const ibv_gid& group) noexcept { ibv_detach_mcast(qp, &group, 0); }

ibv_mtu mtu_from_bytes(int bytes) {
  switch (bytes) {
    case 256: return IBV_MTU_256;
    case 512: return IBV_MTU_512;
    case 1024: return IBV_MTU_1024;
    case 2048: return IBV_MTU_2048;
    case 4096: return IBV_MTU_4096;
    // This end's request was validated: the number came from the other end.
    default: throw peer_error(fmt::format("the peer chose {}: {}", bytes, rule_of(setting<&TestSpec::mtu_bytes>())));
  }
}

std::string describe(ibv_wc_status status) {
  const char* meaning = nullptr;
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      meaning = "the peer's NIC no longer answers (peer gone, link down, or a timeout that is too short)";
      break;
    case IBV_WC_RNR_RETRY_EXC_ERR: meaning = "the peer had no receive posted for too long"; break;
    case IBV_WC_REM_ACCESS_ERR: meaning = "the peer's memory region refused the access (key, bounds or rights)"; break;
    case IBV_WC_REM_INV_REQ_ERR:
      meaning = "the peer could not take the request (message longer than its receive, or operation not allowed)";
      break;
    case IBV_WC_REM_OP_ERR: meaning = "the peer failed to carry it out"; break;
    case IBV_WC_LOC_PROT_ERR: meaning = "the local memory region does not cover the buffer"; break;
    case IBV_WC_LOC_LEN_ERR: meaning = "a message was longer than the receive buffer or the device's limit"; break;
    case IBV_WC_WR_FLUSH_ERR: meaning = "the QP had failed before"; break;
    default: break;
  }
  return meaning ? fmt::format("{}: {}", ibv_wc_status_str(status), meaning) : ibv_wc_status_str(status);
}

}  // namespace gdrperf::verbs
