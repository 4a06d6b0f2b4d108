#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "mlx5/pages.h"
#include "objects/attributes/context.h"

/// The part of DEVX by which programs make QPs and CQs in memory of their own: mlx5dv_devx_*(3).
namespace gdrperf::softnic {

/// Memory that queues are to be in. It may be a GPU's: then the device keeps a copy.
struct DevxUmem {
  std::uint32_t id;  ///< mlx5dv_devx_umem::umem_id
  Context* owner;
  std::uint8_t* address;
  std::size_t bytes;
  bool in_gpu;
};

struct DevxObject;

/// These throw VerbsFailure: EFAULT for what is no memory of this process.
DevxUmem* register_umem(Context& context, void* address, std::size_t bytes);
int deregister_umem(DevxUmem* umem);
/// Null and errno (EREMOTEIO: `out` says why), as mlx5dv_devx_obj_create(3).
DevxObject* create_object(Context& context, const void* in, std::size_t in_size, void* out, std::size_t out_size);
/// 0, or an errno.
int modify_object(DevxObject& object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int query_object(DevxObject& object, const void* in, std::size_t in_size, void* out, std::size_t out_size);
int destroy_object(DevxObject* object);
int general_command(Context& context, const void* in, std::size_t in_size, void* out, std::size_t out_size);

}  // namespace gdrperf::softnic
