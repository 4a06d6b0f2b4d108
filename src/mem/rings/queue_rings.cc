#include "mem/rings/queue_rings.h"

#include <dlfcn.h>

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/mem/rings.h"

namespace gdrperf::mem {
namespace rings {
namespace {

// What mlx5dv_init_obj() takes and fills in, as in mlx5dv.h, which need not be installed.
struct Mlx5Ring {
  void* buffer;
  std::uint32_t count;
  std::uint32_t stride;
};
struct Mlx5Qp {
  std::uint32_t* records;
  Mlx5Ring send;
  Mlx5Ring receive;
  struct {
    void* at;
    std::uint32_t size;
  } doorbell;
  std::uint64_t comp_mask;
  std::byte later[256];
};
struct Mlx5Cq {
  void* buffer;
  std::uint32_t* record;
  std::uint32_t count;
  std::uint32_t entry_bytes;
  void* uar;
  std::uint32_t number;
  std::uint64_t comp_mask;
  std::byte later[64];
};
template <typename In, typename Out>
struct Mlx5Asked {
  In* in;
  Out* out;
};
struct Mlx5Objects {
  Mlx5Asked<ibv_qp, Mlx5Qp> qp;
  Mlx5Asked<ibv_cq, Mlx5Cq> cq;
  std::byte later[128];
};
constexpr std::uint64_t kAskQp = 1u << 0;  // MLX5DV_OBJ_QP
constexpr std::uint64_t kAskCq = 1u << 1;  // MLX5DV_OBJ_CQ

constexpr const char* kLibrary = "libmlx5.so.1";
constexpr std::uint32_t kBlock = 64;

using InitObject = int(Mlx5Objects*, std::uint64_t);
using IsSupported = bool(ibv_device*);

void* mlx5_library() {
  static void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return library;
}
template <typename Function>
Function* ring_function(const char* name) {
  return mlx5_library() == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(mlx5_library(), name));
}

[[noreturn]] void refuse(const std::string& flag, const std::string& why) {
  throw Error(
      ExitCode::kEnvironment, fmt::format("{}: {}", flag, why),
      fmt::format("leave {} out, or run on an mlx5 device (ConnectX-5 or later) with {}; the software device is "
                  "one with SOFTNIC=\"soft0:mlx5=on\"",
                  flag, kLibrary));
}

void check_power(const std::string& flag, const char* what, std::uint32_t count) {
  if (std::has_single_bit(count)) return;
  refuse(flag, fmt::format("mlx5dv_init_obj: {} entries in the {}, where a power of two is due", count, what));
}

CompletionRing completions_of(ibv_cq* cq, const std::string& flag) {
  Mlx5Cq found{};
  Mlx5Objects objects{};
  objects.cq = {cq, &found};
  if (const int error = ring_function<InitObject>("mlx5dv_init_obj")(&objects, kAskCq); error != 0) {
    refuse(flag, fmt::format("mlx5dv_init_obj of a CQ: {}", std::strerror(error)));
  }
  check_power(flag, "completion queue", found.count);
  if (found.entry_bytes != kBlock && found.entry_bytes != 2 * kBlock) {
    refuse(flag, fmt::format("mlx5dv_init_obj: completions of {} bytes, where 64 or 128 are due", found.entry_bytes));
  }
  return {static_cast<std::uint8_t*>(found.buffer), found.count, found.entry_bytes, found.record};
}

}  // namespace
}  // namespace rings

std::string no_rings(ibv_context* context) {
  using namespace rings;
  const char* const name = ::ibv_get_device_name(context->device);
  if (mlx5_library() == nullptr) {
    const char* const why = ::dlerror();
    return fmt::format("libmlx5 is missing: {}", why == nullptr ? kLibrary : why);
  }
  if (ring_function<InitObject>("mlx5dv_init_obj") == nullptr)
    return fmt::format("{} has no mlx5dv_init_obj", kLibrary);
  const auto supported = ring_function<IsSupported>("mlx5dv_is_supported");
  if (supported == nullptr) return fmt::format("{} has no mlx5dv_is_supported", kLibrary);
  if (!supported(context->device))
    return fmt::format("{} is not an mlx5 device: the rings of others are not known", name);
  return {};
}

namespace rings {

QueueRings rings_of(ibv_qp* qp, ibv_cq* send_cq, ibv_cq* recv_cq, const std::string& flag) {
  if (const std::string why = no_rings(qp->context); !why.empty()) refuse(flag, why);
  Mlx5Qp found{};
  Mlx5Objects objects{};
  objects.qp = {qp, &found};
  if (const int error = ring_function<InitObject>("mlx5dv_init_obj")(&objects, kAskQp); error != 0) {
    refuse(flag, fmt::format("mlx5dv_init_obj of a QP: {}", std::strerror(error)));
  }
  check_power(flag, "send queue", found.send.count);
  if (found.send.stride != kBlock)
    refuse(flag, fmt::format("send queue in blocks of {} bytes, where 64 are due", found.send.stride));
  if (found.receive.count != 0) check_power(flag, "receive queue", found.receive.count);
  QueueRings rings;
  rings.qpn = qp->qp_num;
  rings.send = static_cast<std::uint8_t*>(found.send.buffer);
  rings.send_blocks = found.send.count;
  rings.receive = static_cast<std::uint8_t*>(found.receive.buffer);
  rings.receives = found.receive.count;
  rings.receive_bytes = found.receive.stride;
  rings.records = found.records;
  rings.doorbell = static_cast<std::uint64_t*>(found.doorbell.at);
  rings.sent = completions_of(send_cq, flag);
  rings.received = completions_of(recv_cq, flag);
  return rings;
}

}  // namespace rings
}  // namespace gdrperf::mem
