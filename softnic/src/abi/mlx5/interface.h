#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

struct mlx5dv_context;
struct mlx5dv_context_attr;
struct mlx5dv_devx_event_channel;
struct mlx5dv_devx_obj;
struct mlx5dv_devx_uar;
struct mlx5dv_devx_umem;
struct mlx5dv_obj;

/// Between the device and its libmlx5.so.1, which is a library of its own: programs that do not ask for that
/// one see none of its names.
namespace gdrperf::softnic {

inline constexpr unsigned kMlx5TableVersion = 2;

/// mlx5dv_devx_umem_in, which older headers do not have.
struct Mlx5UmemIn {
  void* address;
  std::size_t bytes;
  std::uint32_t access;
  std::uint64_t page_sizes;
  std::uint64_t comp_mask;
  int dmabuf;
};

/// The beginning of mlx5dv_qp_init_attr: what of the rest is given.
struct Mlx5QpInit {
  std::uint64_t comp_mask;
};

/// mlx5dv_*(3) on devices with mlx5=on.
struct Mlx5Table {
  bool (*is_supported)(ibv_device* device);
  /// Memory within a page of doorbells of this process.
  bool (*is_doorbell)(const void* address, std::size_t bytes);
  /// A dma-buf that the program has of GPU memory: of what memory, the dma-buf itself does not say.
  void (*remember_dmabuf)(int dmabuf, void* address, std::size_t bytes);
  int (*query_device)(ibv_context* context, mlx5dv_context* attributes);
  int (*init_obj)(mlx5dv_obj* objects, std::uint64_t types);
  ibv_context* (*open_device)(ibv_device* device, mlx5dv_context_attr* attributes);
  mlx5dv_devx_umem* (*umem_reg)(ibv_context* context, void* address, std::size_t bytes, std::uint32_t access);
  mlx5dv_devx_umem* (*umem_reg_ex)(ibv_context* context, const Mlx5UmemIn* in);
  int (*umem_dereg)(mlx5dv_devx_umem* umem);
  mlx5dv_devx_uar* (*alloc_uar)(ibv_context* context, std::uint32_t flags);
  void (*free_uar)(mlx5dv_devx_uar* uar);
  int (*query_eqn)(ibv_context* context, std::uint32_t vector, std::uint32_t* number);
  mlx5dv_devx_obj* (*obj_create)(ibv_context* context, const void* in, std::size_t in_size, void* out,
                                 std::size_t out_size);
  int (*obj_query)(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  int (*obj_modify)(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  int (*obj_destroy)(mlx5dv_devx_obj* object);
  int (*general_cmd)(ibv_context* context, const void* in, std::size_t in_size, void* out, std::size_t out_size);
  mlx5dv_devx_event_channel* (*create_event_channel)(ibv_context* context);
  void (*destroy_event_channel)(mlx5dv_devx_event_channel* channel);
  int (*subscribe_event)(mlx5dv_devx_event_channel* channel, mlx5dv_devx_obj* object);
  ssize_t (*get_event)(mlx5dv_devx_event_channel* channel);
};

}  // namespace gdrperf::softnic

extern "C" {
/// Null: another version. Exported by the device's library.
const gdrperf::softnic::Mlx5Table* gdrperf_softnic_mlx5(unsigned version);
}
