#include <dlfcn.h>

#include <cerrno>
#include <cstdint>

#include "abi/mlx5/table.h"

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

#pragma GCC visibility pop
}
