#include "abi/mlx5/interface.h"

#include "abi/mlx5/devx_calls.h"
#include "abi/mlx5/direct.h"
#include "mlx5/pages.h"
#include "gpu/dmabufs.h"

using namespace gdrperf::softnic;

extern "C" __attribute__((visibility("default"))) const Mlx5Table* gdrperf_softnic_mlx5(unsigned version) {
  static const Mlx5Table kTable = {
      .is_supported = [](ibv_device* device) { return is_mlx5(device); },
      .is_doorbell = &mlx5::DoorbellPage::has,
      .remember_dmabuf = &remember_dmabuf,
      .query_device = [](ibv_context* context, mlx5dv_context* attributes) { return query_mlx5(context, *attributes); },
      .init_obj = [](mlx5dv_obj* objects, std::uint64_t types) { return show_rings(*objects, types); },
      .open_device = [](ibv_device* device, mlx5dv_context_attr*) { return open_mlx5(device); },
      .umem_reg = [](ibv_context* context, void* address, std::size_t bytes, std::uint32_t access) {
        return devx_umem(context, {address, bytes, access, 0, 0, -1});
      },
      .umem_reg_ex = [](ibv_context* context, const Mlx5UmemIn* in) { return devx_umem(context, *in); },
      .umem_dereg = &devx_forget_umem,
      .alloc_uar = [](ibv_context* context, std::uint32_t) { return devx_uar(context); },
      .free_uar = &devx_free_uar,
      .query_eqn = [](ibv_context* context, std::uint32_t vector, std::uint32_t* number) {
        return devx_event_queue(context, vector, *number);
      },
      .obj_create = &devx_create,
      .obj_query = &devx_query,
      .obj_modify = &devx_modify,
      .obj_destroy = &devx_destroy,
      .general_cmd = &devx_command,
      .create_event_channel = &devx_event_channel,
      .destroy_event_channel = &devx_free_event_channel,
      .subscribe_event = [](mlx5dv_devx_event_channel*, mlx5dv_devx_obj*) { return 0; },
      .get_event = &devx_event,
  };
  return version == kMlx5TableVersion ? &kTable : nullptr;
}
