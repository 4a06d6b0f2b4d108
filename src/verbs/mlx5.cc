#include "gdrperf/verbs/mlx5.h"

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/settings.h"
#include "verbs/sysfs.h"

namespace gdrperf::verbs {
namespace {

/// Null: no such library here, or an older one without the function.
template <typename Function>
Function* mlx5_function(const char* name) {
  static void* const library = ::dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

/// libmlx5 takes objects of its own alone.
bool of_mlx5(ibv_context* context) { return driver_of(::ibv_get_device_name(context->device)) == "mlx5_core"; }

std::string not_mlx5(ibv_context* context) {
  return fmt::format("{} has no Data Direct: mlx5 devices alone do", ::ibv_get_device_name(context->device));
}

// What these functions take and fill in, as in the newest mlx5dv.h: the installed one may be older.
struct OutOfOrderReceives {
  std::uint32_t rc, xrc, dct, ud, uc;
};
struct Mlx5Attributes {
  std::uint64_t version_and_flags[2];
  std::uint64_t comp_mask;
  std::byte others[152];
  OutOfOrderReceives out_of_order;
  std::byte later[256];
};
constexpr std::uint64_t kAskOutOfOrder = 1u << 16;  // MLX5DV_CONTEXT_MASK_OOO_RECV_WRS
struct Mlx5QpAttributes {
  std::uint64_t comp_mask;
  std::uint32_t create_flags;
  std::byte others[52];
};
constexpr std::uint64_t kHasCreateFlags = 1;     // MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS
constexpr std::uint32_t kCreateOutOfOrder = 1u << 7;  // MLX5DV_QP_CREATE_OOO_DP

}  // namespace

std::string data_direct_function(ibv_context* context, std::string& why_not) {
  using Get = int(ibv_context*, char*, std::size_t);
  if (!of_mlx5(context)) {
    why_not = not_mlx5(context);
    return {};
  }
  const auto get = mlx5_function<Get>("mlx5dv_get_data_direct_sysfs_path");
  if (get == nullptr) {
    why_not = "this libmlx5 knows no Data Direct (it takes rdma-core 54)";
    return {};
  }
  std::array<char, 4096> path{};
  if (const int error = get(context, path.data(), path.size() - 1); error != 0) {
    why_not = fmt::format("mlx5dv_get_data_direct_sysfs_path: {} (no DMA function belongs to {})", std::strerror(error),
                          ::ibv_get_device_name(context->device));
    return {};
  }
  return std::filesystem::path(path.data()).filename().string();
}

Mr register_data_direct(ibv_pd* pd, std::size_t bytes, std::uint64_t iova, int fd, int access, std::string& why_not) {
  using Register = ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int, int);
  constexpr int kDataDirectAccess = 1;  // MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT
  if (data_direct_function(pd->context, why_not).empty()) return nullptr;
  const auto reg = mlx5_function<Register>("mlx5dv_reg_dmabuf_mr");
  if (reg == nullptr) {
    why_not = "this libmlx5 has no mlx5dv_reg_dmabuf_mr (it takes rdma-core 54)";
    return nullptr;
  }
  Mr mr(reg(pd, 0, bytes, iova, fd, access, kDataDirectAccess));
  if (!mr) why_not = fmt::format("mlx5dv_reg_dmabuf_mr: {}", std::strerror(errno));
  return mr;
}

bool set_udp_source_port(ibv_qp* qp, int port) {
  using Set = int(ibv_qp*, std::uint16_t);
  if (!of_mlx5(qp->context)) return false;
  const auto set = mlx5_function<Set>("mlx5dv_modify_qp_udp_sport");
  return set != nullptr && set(qp, static_cast<std::uint16_t>(port)) == 0;
}

void set_lag_port(ibv_qp* qp, int port) {
  using Set = int(ibv_qp*, std::uint8_t);
  std::string why = "mlx5 devices alone let a QP choose";
  if (of_mlx5(qp->context)) {
    const auto set = mlx5_function<Set>("mlx5dv_modify_qp_lag_port");
    const int error = set == nullptr ? ENOSYS : set(qp, static_cast<std::uint8_t>(port));
    if (error == 0) return;
    why = set == nullptr ? "this libmlx5 has no mlx5dv_modify_qp_lag_port (it takes rdma-core 28)"
                         : fmt::format("mlx5dv_modify_qp_lag_port: {} (is it a bond of at least {} ports?)",
                                       std::strerror(error), port);
  }
  throw Error(
      ExitCode::kEnvironment,
      fmt::format("{} {}: {}: {}", flag<&TestSpec::lag_ports>(), port, ::ibv_get_device_name(qp->context->device), why),
      "leave it out: the device deals QPs to its ports by itself");
}

std::uint32_t out_of_order_receives(ibv_context* context, ibv_qp_type type, std::string& why_not) {
  using Query = int(ibv_context*, Mlx5Attributes*);
  if (!of_mlx5(context)) {
    why_not = "mlx5 devices alone have such QPs";
    return 0;
  }
  const auto query = mlx5_function<Query>("mlx5dv_query_device");
  Mlx5Attributes found{};
  found.comp_mask = kAskOutOfOrder;
  if (query == nullptr || query(context, &found) != 0 || (found.comp_mask & kAskOutOfOrder) == 0) {
    why_not = "this libmlx5 or its driver knows of none (mlx5dv_query_device)";
    return 0;
  }
  const std::uint32_t most = type == IBV_QPT_UD   ? found.out_of_order.ud
                             : type == IBV_QPT_UC ? found.out_of_order.uc
                                                  : found.out_of_order.rc;
  if (most == 0) why_not = "it has none of this transport (ooo_recv_wrs_caps of mlx5dv_query_device)";
  return most;
}

Qp make_out_of_order_qp(ibv_pd* pd, ibv_qp_init_attr& attr, Inlining inlining) {
  using Create = ibv_qp*(ibv_context*, ibv_qp_init_attr_ex*, Mlx5QpAttributes*);
  const auto make = mlx5_function<Create>("mlx5dv_create_qp");
  Qp qp;
  const auto create = [&](ibv_qp_init_attr& granted) {
    ibv_qp_init_attr_ex full{};
    std::memcpy(&full, &granted, sizeof granted);
    full.comp_mask = IBV_QP_INIT_ATTR_PD;
    full.pd = pd;
    Mlx5QpAttributes flags{};
    flags.comp_mask = kHasCreateFlags;
    flags.create_flags = kCreateOutOfOrder;
    errno = ENOSYS;
    if (make != nullptr) qp.reset(make(pd->context, &full, &flags));
    granted.cap = full.cap;
    return qp != nullptr;
  };
  if (!create_qp(attr, inlining, create)) throw_qp_creation(::ibv_get_device_name(pd->context->device), errno, attr);
  return qp;
}

}  // namespace gdrperf::verbs
