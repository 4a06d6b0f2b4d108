#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/verbs/abi.h"
#include "abi/libc/forward.h"
#include "objects/attributes/buffers.h"
#include "objects/attributes/calls.h"
#include "objects/attributes/context.h"

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

constexpr std::uint64_t kMaskAddress = 2, kMaskBuffer = 32;
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
  return make_requested_mr(pd, *request);
}

int softnic_query_port_speed(ibv_context* context, std::uint32_t port,
                             std::uint64_t* speed) __asm__("ibv_query_port_speed");
int softnic_query_port_speed(ibv_context* context, std::uint32_t port, std::uint64_t* speed) {
  if (!is_soft(context)) {
    const auto real = real_one(&softnic_query_port_speed, "ibv_query_port_speed");
    return real != nullptr ? real(context, port, speed) : EOPNOTSUPP;
  }
  const Device* const own = Context::of(context).device.port_at(port);
  if (own == nullptr) return EINVAL;
  *speed = static_cast<std::uint64_t>(port_gigabits(*own) * kUnitsOf100Mbps);
  return 0;
}

DmaHandle* softnic_alloc_dmah(ibv_context* context, DmaHandleRequest* request) __asm__("ibv_alloc_dmah");
DmaHandle* softnic_alloc_dmah(ibv_context* context, DmaHandleRequest* request) {
  if (is_soft(context)) return make_dma_handle(context, *request);
  const auto real = real_one(&softnic_alloc_dmah, "ibv_alloc_dmah");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(context, request);
}

int softnic_dealloc_dmah(DmaHandle* handle) __asm__("ibv_dealloc_dmah");
int softnic_dealloc_dmah(DmaHandle* handle) {
  if (is_soft(handle->context)) {
    free_dma_handle(handle);
    return 0;
  }
  const auto real = real_one(&softnic_dealloc_dmah, "ibv_dealloc_dmah");
  return real != nullptr ? real(handle) : EOPNOTSUPP;
}

void* softnic_alloc_buf(ibv_pd* pd, std::size_t size, Buffer** buffer) __asm__("ibv_alloc_buf");
void* softnic_alloc_buf(ibv_pd* pd, std::size_t size, Buffer** buffer) {
  if (is_soft(pd->context)) return make_buffer(pd, size, *buffer);
  const auto real = real_one(&softnic_alloc_buf, "ibv_alloc_buf");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(pd, size, buffer);
}

void softnic_free_buf(Buffer* buffer) __asm__("ibv_free_buf");
void softnic_free_buf(Buffer* buffer) {
  if (is_soft(buffer->pd->context)) {
    free_buffer(buffer);
  } else if (const auto real = real_one(&softnic_free_buf, "ibv_free_buf")) {
    real(buffer);
  }
}

ibv_mr* softnic_reg_buf_mr(ibv_pd* pd, Buffer* buffer, void* address, std::size_t length,
                           int access) __asm__("ibv_reg_buf_mr");
ibv_mr* softnic_reg_buf_mr(ibv_pd* pd, Buffer* buffer, void* address, std::size_t length, int access) {
  if (is_soft(pd->context)) {
    MrRequest request{};
    request.length = length;
    request.access = access;
    request.comp_mask = kMaskAddress | kMaskBuffer;
    request.addr = address;
    request.buf = buffer;
    return make_requested_mr(pd, request);
  }
  const auto real = real_one(&softnic_reg_buf_mr, "ibv_reg_buf_mr");
  if (real == nullptr) SOFTNIC_REFUSE_POINTER(EOPNOTSUPP);
  return real(pd, buffer, address, length, access);
}

// Ours are no dma-bufs.
int softnic_export_buf_dmabuf_fd(Buffer* buffer) __asm__("ibv_export_buf_dmabuf_fd");
int softnic_export_buf_dmabuf_fd(Buffer* buffer) {
  const auto real =
      is_soft(buffer->pd->context) ? nullptr : real_one(&softnic_export_buf_dmabuf_fd, "ibv_export_buf_dmabuf_fd");
  if (real != nullptr) return real(buffer);
  errno = ENODATA;
  return -1;
}

int softnic_dm_export_dmabuf_fd(ibv_dm* dm) __asm__("ibv_dm_export_dmabuf_fd");
int softnic_dm_export_dmabuf_fd(ibv_dm* dm) {
  const auto real = is_soft(dm->context) ? nullptr : real_one(&softnic_dm_export_dmabuf_fd, "ibv_dm_export_dmabuf_fd");
  if (real != nullptr) return real(dm);
  errno = EOPNOTSUPP;
  return -1;
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
