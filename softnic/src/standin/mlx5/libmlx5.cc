#include <dlfcn.h>

#include <cerrno>
#include <cstdint>

#include "abi/mlx5/interface.h"

/// The device's libmlx5.so.1: names, and nothing of a device, which is in the library that is preloaded or
/// stands in for libibverbs.
namespace gdrperf::softnic {
namespace {

using Find = const Mlx5Table*(unsigned version);

const Mlx5Table* find_table() {
  void* found = ::dlsym(RTLD_DEFAULT, "gdrperf_softnic_mlx5");
  if (found == nullptr) {
    void* const verbs = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (verbs != nullptr) found = ::dlsym(verbs, "gdrperf_softnic_mlx5");
  }
  return found != nullptr ? reinterpret_cast<Find*>(found)(kMlx5TableVersion) : nullptr;
}

/// Null where the device is not in this process.
const Mlx5Table* table() {
  static const Mlx5Table* const found = find_table();
  return found;
}

template <typename T>
T nothing() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace
}  // namespace gdrperf::softnic

using namespace gdrperf::softnic;

extern "C" {
#pragma GCC visibility push(default)

bool mlx5dv_is_supported(ibv_device* device);
bool mlx5dv_is_supported(ibv_device* device) { return table() != nullptr && table()->is_supported(device); }

int mlx5dv_query_device(ibv_context* context, mlx5dv_context* attributes);
int mlx5dv_query_device(ibv_context* context, mlx5dv_context* attributes) {
  return table() != nullptr ? table()->query_device(context, attributes) : EOPNOTSUPP;
}

int mlx5dv_init_obj(mlx5dv_obj* objects, std::uint64_t types);
int mlx5dv_init_obj(mlx5dv_obj* objects, std::uint64_t types) {
  return table() != nullptr ? table()->init_obj(objects, types) : EOPNOTSUPP;
}

ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attributes);
ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attributes) {
  return table() != nullptr ? table()->open_device(device, attributes) : nothing<ibv_context*>();
}

mlx5dv_devx_umem* mlx5dv_devx_umem_reg(ibv_context* context, void* address, std::size_t bytes, std::uint32_t access);
mlx5dv_devx_umem* mlx5dv_devx_umem_reg(ibv_context* context, void* address, std::size_t bytes, std::uint32_t access) {
  return table() != nullptr ? table()->umem_reg(context, address, bytes, access) : nothing<mlx5dv_devx_umem*>();
}

mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context* context, Mlx5UmemIn* in);
mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context* context, Mlx5UmemIn* in) {
  return table() != nullptr ? table()->umem_reg_ex(context, in) : nothing<mlx5dv_devx_umem*>();
}

int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* umem);
int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* umem) {
  return table() != nullptr ? table()->umem_dereg(umem) : EOPNOTSUPP;
}

mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context* context, std::uint32_t flags);
mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context* context, std::uint32_t flags) {
  return table() != nullptr ? table()->alloc_uar(context, flags) : nothing<mlx5dv_devx_uar*>();
}

int mlx5dv_devx_query_eqn(ibv_context* context, std::uint32_t vector, std::uint32_t* number);
int mlx5dv_devx_query_eqn(ibv_context* context, std::uint32_t vector, std::uint32_t* number) {
  return table() != nullptr ? table()->query_eqn(context, vector, number) : EOPNOTSUPP;
}

mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context* context, const void* in, std::size_t in_size, void* out,
                                        std::size_t out_size);
mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context* context, const void* in, std::size_t in_size, void* out,
                                        std::size_t out_size) {
  return table() != nullptr ? table()->obj_create(context, in, in_size, out, out_size) : nothing<mlx5dv_devx_obj*>();
}

int mlx5dv_devx_obj_query(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                          std::size_t out_size);
int mlx5dv_devx_obj_query(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                          std::size_t out_size) {
  return table() != nullptr ? table()->obj_query(object, in, in_size, out, out_size) : EOPNOTSUPP;
}

int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                           std::size_t out_size);
int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                           std::size_t out_size) {
  return table() != nullptr ? table()->obj_modify(object, in, in_size, out, out_size) : EOPNOTSUPP;
}

int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object);
int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object) {
  return table() != nullptr ? table()->obj_destroy(object) : EOPNOTSUPP;
}

int mlx5dv_devx_general_cmd(ibv_context* context, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int mlx5dv_devx_general_cmd(ibv_context* context, const void* in, std::size_t in_size, void* out,
                            std::size_t out_size) {
  return table() != nullptr ? table()->general_cmd(context, in, in_size, out, out_size) : EOPNOTSUPP;
}

void mlx5dv_devx_free_uar(mlx5dv_devx_uar* uar);
void mlx5dv_devx_free_uar(mlx5dv_devx_uar* uar) {
  if (table() != nullptr) table()->free_uar(uar);
}

/// QPs that verbs can make: what only mlx5 has (DC targets and initiators, streams, WQEs of UMR) is refused.
ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes, const Mlx5QpInit* more);
ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attributes, const Mlx5QpInit* more) {
  if (table() == nullptr || !table()->is_supported(context->device)) return nothing<ibv_qp*>();
  if (more != nullptr && more->comp_mask != 0) return nothing<ibv_qp*>();
  return verbs_get_ctx(context)->create_qp_ex(context, attributes);
}

/// Of QPs that verbs made, no command is known.
int mlx5dv_devx_qp_query(ibv_qp* qp, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int mlx5dv_devx_qp_query(ibv_qp*, const void*, std::size_t, void*, std::size_t) {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

int mlx5dv_devx_qp_modify(ibv_qp* qp, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int mlx5dv_devx_qp_modify(ibv_qp*, const void*, std::size_t, void*, std::size_t) {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

mlx5dv_devx_event_channel* mlx5dv_devx_create_event_channel(ibv_context* context, int flags);
mlx5dv_devx_event_channel* mlx5dv_devx_create_event_channel(ibv_context* context, int) {
  return table() != nullptr ? table()->create_event_channel(context) : nothing<mlx5dv_devx_event_channel*>();
}

void mlx5dv_devx_destroy_event_channel(mlx5dv_devx_event_channel* channel);
void mlx5dv_devx_destroy_event_channel(mlx5dv_devx_event_channel* channel) {
  if (table() != nullptr) table()->destroy_event_channel(channel);
}

int mlx5dv_devx_subscribe_devx_event(mlx5dv_devx_event_channel* channel, mlx5dv_devx_obj* object, std::uint16_t bytes,
                                     std::uint16_t* events, std::uint64_t cookie);
int mlx5dv_devx_subscribe_devx_event(mlx5dv_devx_event_channel* channel, mlx5dv_devx_obj* object, std::uint16_t,
                                     std::uint16_t*, std::uint64_t) {
  return table() != nullptr ? table()->subscribe_event(channel, object) : EOPNOTSUPP;
}

ssize_t mlx5dv_devx_get_event(mlx5dv_devx_event_channel* channel, void* event, std::size_t bytes);
ssize_t mlx5dv_devx_get_event(mlx5dv_devx_event_channel* channel, void*, std::size_t) {
  if (table() != nullptr) return table()->get_event(channel);
  errno = EOPNOTSUPP;
  return -1;
}

#pragma GCC visibility pop
}
