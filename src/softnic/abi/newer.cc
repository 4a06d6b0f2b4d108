#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/abi.h"
#include "abi/forward.h"
#include "objects/calls.h"
#include "objects/context.h"

/// Functions of libibverbs later than the headers that this builds with: ours
/// under other names in C++, since newer headers declare them. Those that only
/// take objects which we refuse to make are left to the real library.
using namespace gdrperf::softnic;

namespace {

/// The function of this name and of `sample`'s type in the real library, or null.
template <typename F>
F real_one(F, const char* name) {
  return reinterpret_cast<F>(real_function(name));
}

/// struct ibv_mr_init_attr of rdma-core 58; anything later follows in comp_mask.
struct MrRequest {
  std::size_t length;
  int access;
  std::uint64_t comp_mask;
  std::uint64_t iova;
  void* addr;
  int fd;
  std::uint64_t fd_offset;
  void* dmah;
  void* buffer;
};
constexpr std::uint64_t kMaskIova = 1, kMaskAddress = 2;

constexpr double kUnitsOf100Mbps = 10;

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

ibv_mr* softnic_reg_mr_ex(ibv_pd* pd, MrRequest* request) __asm__("ibv_reg_mr_ex");
ibv_mr* softnic_reg_mr_ex(ibv_pd* pd, MrRequest* request) {
  if (!is_soft(pd->context)) {
    const auto real = real_one(&softnic_reg_mr_ex, "ibv_reg_mr_ex");
    if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
    return real(pd, request);
  }
  if ((request->comp_mask & ~(kMaskIova | kMaskAddress)) != 0) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  if ((request->comp_mask & kMaskAddress) == 0) SOFTNIC_REFUSE_POINTER(EINVAL);
  const std::uint64_t iova = (request->comp_mask & kMaskIova) != 0
                                 ? request->iova
                                 : reinterpret_cast<std::uint64_t>(request->addr);
  return make_mr(pd, request->addr, request->length, iova, static_cast<unsigned>(request->access));
}

int softnic_query_port_speed(ibv_context* context, std::uint32_t port,
                             std::uint64_t* speed) __asm__("ibv_query_port_speed");
int softnic_query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed) {
  if (!is_soft(context)) {
    const auto real = real_one(&softnic_query_port_speed, "ibv_query_port_speed");
    return real != nullptr ? real(context, port, speed) : EOPNOTSUPP;
  }
  if (port != kPort) return EINVAL;
  *speed = static_cast<std::uint64_t>(port_gigabits(Context::of(context).device) * kUnitsOf100Mbps);
  return 0;
}

void* softnic_alloc_dmah(ibv_context* context, void* attr) __asm__("ibv_alloc_dmah");
void* softnic_alloc_dmah(ibv_context* context, void* attr) {
  const auto real = is_soft(context) ? nullptr : real_one(&softnic_alloc_dmah, "ibv_alloc_dmah");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(context, attr);
}

void* softnic_alloc_buf(ibv_pd* pd, std::size_t size, void** buffer) __asm__("ibv_alloc_buf");
void* softnic_alloc_buf(ibv_pd* pd, std::size_t size, void** buffer) {
  const auto real = is_soft(pd->context) ? nullptr : real_one(&softnic_alloc_buf, "ibv_alloc_buf");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(pd, size, buffer);
}

ibv_mr* softnic_reg_buf_mr(ibv_pd* pd, void* buffer, void* address, std::size_t length,
                           int access) __asm__("ibv_reg_buf_mr");
ibv_mr* softnic_reg_buf_mr(ibv_pd* pd, void* buffer, void* address, std::size_t length, int access) {
  const auto real = is_soft(pd->context) ? nullptr : real_one(&softnic_reg_buf_mr, "ibv_reg_buf_mr");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(pd, buffer, address, length, access);
}

int softnic_query_comp_cntr_caps(ibv_context* context, void* caps,
                                 std::size_t size) __asm__("_ibv_query_comp_cntr_caps");
int softnic_query_comp_cntr_caps(ibv_context* context, void* caps, std::size_t size) {
  const auto real =
      is_soft(context) ? nullptr : real_one(&softnic_query_comp_cntr_caps, "_ibv_query_comp_cntr_caps");
  return real != nullptr ? real(context, caps, size) : EOPNOTSUPP;
}

void* softnic_create_comp_cntr(ibv_context* context, void* attr) __asm__("ibv_create_comp_cntr");
void* softnic_create_comp_cntr(ibv_context* context, void* attr) {
  const auto real = is_soft(context) ? nullptr : real_one(&softnic_create_comp_cntr, "ibv_create_comp_cntr");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(context, attr);
}

int softnic_qp_attach_comp_cntr(ibv_qp* qp, void* counter, void* attr) __asm__("ibv_qp_attach_comp_cntr");
int softnic_qp_attach_comp_cntr(ibv_qp* qp, void* counter, void* attr) {
  const auto real =
      is_soft(qp->context) ? nullptr : real_one(&softnic_qp_attach_comp_cntr, "ibv_qp_attach_comp_cntr");
  return real != nullptr ? real(qp, counter, attr) : EOPNOTSUPP;
}

#pragma GCC visibility pop
}
