#pragma once

#include <infiniband/mlx5dv.h>

#include <cstdint>

/// mlx5dv_*(3) that tell of a device, and of the rings of its objects.
namespace gdrperf::softnic {

bool is_mlx5(const ibv_device* device);
int query_mlx5(ibv_context* context, mlx5dv_context& attributes);
/// 0, or an errno. What is asked for is the program's to write to from then on.
int show_rings(mlx5dv_obj& objects, std::uint64_t types);

}  // namespace gdrperf::softnic
