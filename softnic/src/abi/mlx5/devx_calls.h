#pragma once

#include <infiniband/mlx5dv.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "abi/mlx5/interface.h"

/// mlx5dv_devx_*(3): a null pointer and errno, or an errno.
namespace gdrperf::softnic {

ibv_context* open_mlx5(ibv_device* device);
mlx5dv_devx_umem* devx_umem(ibv_context* context, const Mlx5UmemIn& in);
int devx_forget_umem(mlx5dv_devx_umem* umem);
mlx5dv_devx_uar* devx_uar(ibv_context* context);
void devx_free_uar(mlx5dv_devx_uar* uar);
int devx_event_queue(ibv_context* context, std::uint32_t vector, std::uint32_t& number);
mlx5dv_devx_obj* devx_create(ibv_context* context, const void* in, std::size_t in_size, void* out,
                             std::size_t out_size);
int devx_query(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int devx_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int devx_destroy(mlx5dv_devx_obj* object);
/// A channel on which no event ever comes.
mlx5dv_devx_event_channel* devx_event_channel(ibv_context* context);
void devx_free_event_channel(mlx5dv_devx_event_channel* channel);
/// Waits, or -1 and EAGAIN where the channel does not block.
ssize_t devx_event(mlx5dv_devx_event_channel* channel);
int devx_command(ibv_context* context, const void* in, std::size_t in_size, void* out, std::size_t out_size);

}  // namespace gdrperf::softnic
