#include "abi/mlx5/table.h"

#include "abi/mlx5/direct.h"

using namespace gdrperf::softnic;

extern "C" __attribute__((visibility("default"))) const Mlx5Table* gdrperf_softnic_mlx5(unsigned version) {
  static constexpr Mlx5Table kTable = {
      .is_supported = [](ibv_device* device) { return is_mlx5(device); },
      .query_device = [](ibv_context* context, mlx5dv_context* attributes) { return query_mlx5(context, *attributes); },
      .init_obj = [](mlx5dv_obj* objects, std::uint64_t types) { return show_rings(*objects, types); },
  };
  return version == kMlx5TableVersion ? &kTable : nullptr;
}
