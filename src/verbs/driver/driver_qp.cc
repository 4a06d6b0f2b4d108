#include "gdrperf/verbs/driver_qp.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "gdrperf/verbs/compat.h"
#include "verbs/driver/maker_functions.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

// What these functions take, as in the newest mlx5dv.h and efadv.h: the installed ones may be older.
struct Mlx5DcAttributes {
  std::uint64_t comp_mask;
  std::uint32_t create_flags;
  std::uint32_t reserved;
  std::uint32_t dc_type;
  std::uint32_t also_reserved;
  std::uint64_t access_key;
  std::uint64_t send_ops_flags;
};
static_assert(sizeof(Mlx5DcAttributes) == 40);
constexpr std::uint64_t kHasFlags = 1, kHasDc = 2;         // MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS, _DC
constexpr std::uint32_t kTarget = 1, kInitiator = 2;       // MLX5DV_DCTYPE_DCT, _DCI
constexpr std::uint32_t kNoScatterToCompletion = 1u << 3;  // MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE

struct EfaQpAttributes {
  std::uint64_t comp_mask;
  std::uint32_t driver_qp_type;  // 0: EFADV_QP_DRIVER_TYPE_SRD
  std::uint16_t flags;
  std::uint8_t sl;
  std::uint8_t reserved;
};
struct EfaDevice {
  std::uint64_t comp_mask;
  std::uint32_t max_sq_wr, max_rq_wr;
  std::uint16_t max_sq_sge, max_rq_sge, inline_bytes, inline_bytes_ex;
  std::uint32_t device_caps, max_rdma_size;
};
constexpr std::uint32_t kReads = 1u << 0, kWrites = 1u << 3;  // EFADV_DEVICE_ATTR_CAPS_RDMA_READ, _WRITE

using CreateMlx5 = ibv_qp*(ibv_context*, ibv_qp_init_attr_ex*, Mlx5DcAttributes*);
using CreateEfa = ibv_qp*(ibv_context*, ibv_qp_init_attr_ex*, EfaQpAttributes*, std::uint32_t);
using QueryEfa = int(ibv_context*, EfaDevice*, std::uint32_t);

struct Maker {
  const char* name;      ///< of the transport
  const char* word;      ///< as it is typed
  const char* library;
  const char* create;    ///< its function that makes such QPs
  const char* driver;    ///< of the kernel
  const char* devices;   ///< whose driver that is
};

const Maker& maker_of(DriverKind kind) {
  static constexpr Maker kDc{
      "DC", "dc", "libmlx5.so.1", "mlx5dv_create_qp", "mlx5_core", "NVIDIA's ConnectX and BlueField"};
  static constexpr Maker kSrd{"SRD", "srd", "libefa.so.1", "efadv_create_qp_ex", "efa", "AWS's Elastic Fabric Adapter"};
  return kind == DriverKind::kDc ? kDc : kSrd;
}

Error lacks(const Maker& maker, const std::string& what) {
  return {ExitCode::kEnvironment, fmt::format("{} {}: {}", flag<&TestSpec::transport>(), maker.word, what),
          fmt::format("{} rc is on every device", flag<&TestSpec::transport>())};
}

Error failed(const char* call, int error, ibv_context* context, DriverKind kind) {
  const Maker& maker = maker_of(kind);
  return call_error(fmt::format("{} {}: {}", flag<&TestSpec::transport>(), maker.word, call), error,
                    ::ibv_get_device_name(context->device),
                    fmt::format("the device, its firmware or its driver may have no {} ({} rc)", maker.name,
                                flag<&TestSpec::transport>()));
}

void modify(ibv_qp* qp, ibv_qp_attr& attr, int mask, const char* step, DriverKind kind) {
  const int result = ::ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
  if (result != 0)
    throw failed(fmt::format("ibv_modify_qp({})", step).c_str(), result > 0 ? result : errno, qp->context, kind);
}

ibv_qp* create_at_maker(ibv_context* context, ibv_qp_init_attr_ex& attr, DriverKind kind, std::uint32_t dc_type) {
  errno = ENOSYS;
  if (kind == DriverKind::kSrd) {
    const auto create = maker_function<CreateEfa>(maker_of(kind).library, maker_of(kind).create);
    EfaQpAttributes srd{};
    return create == nullptr ? nullptr : create(context, &attr, &srd, sizeof srd);
  }
  const auto create = maker_function<CreateMlx5>(maker_of(kind).library, maker_of(kind).create);
  Mlx5DcAttributes dc{};
  dc.comp_mask = kHasDc | (dc_type == kInitiator ? kHasFlags : 0);
  if (dc_type == kInitiator) dc.create_flags = kNoScatterToCompletion;
  dc.dc_type = dc_type;
  if (dc_type == kTarget) dc.access_key = kDcKey;
  return create == nullptr ? nullptr : create(context, &attr, &dc);
}

}  // namespace

void require_driver_qps(ibv_context* context, DriverKind kind) {
  const Maker& maker = maker_of(kind);
  const char* const device = ::ibv_get_device_name(context->device);
  if (const std::string driver = driver_of(device); driver != maker.driver) {
    throw lacks(maker, fmt::format("{} is no device of {} ({}) but of {}: {} alone makes {}", device, maker.driver,
                                   maker.devices, driver.empty() ? "no PCI driver" : driver, maker.create, maker.name));
  }
  if (maker_function<void()>(maker.library, maker.create) != nullptr) return;
  ::dlerror();
  if (::dlopen(maker.library, RTLD_NOW | RTLD_LOCAL) != nullptr)
    throw lacks(maker, fmt::format("{} has no {}: install a newer rdma-core", maker.library, maker.create));
  const char* const why = ::dlerror();
  throw lacks(maker, fmt::format("{} cannot be loaded ({}): install rdma-core's providers (ibverbs-providers)",
                                 maker.library, why == nullptr ? "not found" : why));
}

bool device_at_hand(DriverKind kind) {
  std::error_code none;
  const std::filesystem::directory_iterator devices(class_folder(""), none);
  return std::any_of(begin(devices), end(devices), [kind](const std::filesystem::directory_entry& each) {
    return driver_of(each.path().filename().string()) == maker_of(kind).driver;
  });
}

std::uint64_t send_ops_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE: return IBV_QP_EX_WITH_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    case IBV_WR_SEND: return IBV_QP_EX_WITH_SEND;
    case IBV_WR_SEND_WITH_IMM: return IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_WR_RDMA_READ: return IBV_QP_EX_WITH_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    default: return 0;
  }
}

Qp make_driver_qp(ibv_pd* pd, ibv_qp_init_attr& attr, DriverKind kind, std::uint64_t send_ops, Inlining inlining) {
  Qp qp;
  const auto create = [&](ibv_qp_init_attr& granted) {
    ibv_qp_init_attr_ex full{};
    full.send_cq = granted.send_cq;
    full.recv_cq = granted.recv_cq;
    full.cap = granted.cap;
    // What arrives over DC arrives at a target.
    if (kind == DriverKind::kDc) full.cap.max_recv_wr = full.cap.max_recv_sge = 0;
    full.qp_type = IBV_QPT_DRIVER;
    full.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    full.pd = pd;
    full.send_ops_flags = send_ops;
    qp.reset(create_at_maker(pd->context, full, kind, kInitiator));
    granted.cap = full.cap;
    return qp != nullptr;
  };
  if (!create_qp(attr, inlining, create)) throw failed(maker_of(kind).create, errno, pd->context, kind);
  return qp;
}

void driver_qp_to_init(ibv_qp* qp, DriverKind kind, int port, int pkey_index) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = static_cast<std::uint16_t>(pkey_index);
  attr.port_num = static_cast<std::uint8_t>(port);
  attr.qkey = kQkey;
  const int own = kind == DriverKind::kSrd ? IBV_QP_QKEY : 0;
  modify(qp, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own, "RESET to INIT", kind);
}

void driver_qp_to_rts(ibv_qp* qp, DriverKind kind, const QpPath& path) {
  const bool dc = kind == DriverKind::kDc;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = mtu_from_bytes(path.mtu_bytes);
  attr.ah_attr = address_of(path);
  modify(qp, attr, dc ? IBV_QP_AV | IBV_QP_PATH_MTU : 0, "INIT to RTR", kind);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = static_cast<std::uint8_t>(path.timeout);
  attr.retry_cnt = static_cast<std::uint8_t>(path.retry_count);
  attr.rnr_retry = static_cast<std::uint8_t>(path.rnr_retry);
  attr.sq_psn = path.local_psn;
  attr.max_rd_atomic = static_cast<std::uint8_t>(path.max_rd_atomic);
  const int own = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  modify(qp, attr, IBV_QP_SQ_PSN | (dc ? own : 0), "RTR to RTS", kind);
}

Qp make_dc_target(ibv_pd* pd, ibv_cq* cq, ibv_srq* srq) {
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.srq = srq;
  attr.qp_type = IBV_QPT_DRIVER;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  Qp target(create_at_maker(pd->context, attr, DriverKind::kDc, kTarget));
  if (!target) throw failed("mlx5dv_create_qp(target)", errno, pd->context, DriverKind::kDc);
  return target;
}

void answer_dc(ibv_qp* target, const QpPath& own_path, int access, int pkey_index) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = static_cast<std::uint16_t>(pkey_index);
  attr.port_num = own_path.port;
  attr.qp_access_flags = static_cast<unsigned>(access);
  modify(target, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "target, RESET to INIT", DriverKind::kDc);
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = mtu_from_bytes(own_path.mtu_bytes);
  attr.min_rnr_timer = static_cast<std::uint8_t>(own_path.min_rnr_timer);
  attr.ah_attr = address_of(own_path);
  modify(target, attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER, "target, INIT to RTR", DriverKind::kDc);
}

std::uint64_t most_srd_bytes(ibv_context* context, ibv_wr_opcode opcode) {
  const auto query = maker_function<QueryEfa>(maker_of(DriverKind::kSrd).library, "efadv_query_device");
  EfaDevice device{};
  if (query == nullptr || query(context, &device, sizeof device) != 0) return 0;
  const std::uint32_t needed = opcode == IBV_WR_RDMA_READ ? kReads : kWrites;
  return (device.device_caps & needed) == 0 ? 0 : device.max_rdma_size;
}

}  // namespace gdrperf::verbs
