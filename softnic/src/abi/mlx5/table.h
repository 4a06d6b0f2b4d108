#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

struct mlx5dv_context;
struct mlx5dv_obj;

/// Between the device and its libmlx5.so.1, which is a library of its own: programs that do not ask for that
/// one see none of its names.
namespace gdrperf::softnic {

inline constexpr unsigned kMlx5TableVersion = 1;

/// mlx5dv_*(3) on devices with mlx5=on.
struct Mlx5Table {
  bool (*is_supported)(ibv_device* device);
  int (*query_device)(ibv_context* context, mlx5dv_context* attributes);
  int (*init_obj)(mlx5dv_obj* objects, std::uint64_t types);
};

}  // namespace gdrperf::softnic

extern "C" {
/// Null: another version. Exported by the device's library.
const gdrperf::softnic::Mlx5Table* gdrperf_softnic_mlx5(unsigned version);
}
