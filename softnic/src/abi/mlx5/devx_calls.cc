#include "abi/mlx5/devx_calls.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "abi/mlx5/direct.h"
#include "mlx5/nic.h"
#include "objects/attributes/context.h"
#include "objects/mlx5/devx.h"
#include "gpu/dmabufs.h"
#include "objects/queues/guarded.h"
#include "objects/queues/verbs_ops.h"

namespace gdrperf::softnic {
namespace {

constexpr std::uint64_t kUmemByDmabuf = 1;  // MLX5DV_UMEM_MASK_DMABUF, which older headers do not have

struct DevxUar : mlx5dv_devx_uar {
  std::shared_ptr<mlx5::DoorbellPage> page;
};

/// Throws VerbsFailure for devices without mlx5=on, and in a forked child.
Context& nic_of(ibv_context* context) {
  if (context == nullptr || !is_mlx5(context->device) || !Context::of(context).alive()) throw VerbsFailure{EOPNOTSUPP};
  return Context::of(context);
}

/// What throws becomes an errno. Programs look at errno, too.
template <typename F>
int as_errno(F&& call) {
  int error = 0;
  errno = 0;
  static int done;
  if (guarded([&]() -> int* {
        error = call();
        return &done;
      }) == nullptr) {
    error = errno;
  }
  if (error != 0) errno = error;
  return error;
}

}  // namespace

ibv_context* open_mlx5(ibv_device* device) {
  if (is_mlx5(device)) return open_device(device);
  errno = EOPNOTSUPP;
  return nullptr;
}

mlx5dv_devx_umem* devx_umem(ibv_context* context, const Mlx5UmemIn& in) {
  static_assert(offsetof(DevxUmem, id) == 0 && sizeof(mlx5dv_devx_umem) == sizeof(std::uint32_t));
  return guarded([&]() -> mlx5dv_devx_umem* {
    Context& owner = nic_of(context);
    if ((in.comp_mask & ~kUmemByDmabuf) != 0) throw VerbsFailure{EOPNOTSUPP};
    void* memory = in.address;
    // Then the address is an offset.
    if (in.comp_mask != 0) {
      memory = find_dmabuf(in.dmabuf, reinterpret_cast<std::uintptr_t>(in.address), in.bytes);
      if (memory == nullptr) throw VerbsFailure{EOPNOTSUPP};
    }
    return reinterpret_cast<mlx5dv_devx_umem*>(register_umem(owner, memory, in.bytes));
  });
}

int devx_forget_umem(mlx5dv_devx_umem* umem) { return deregister_umem(reinterpret_cast<DevxUmem*>(umem)); }

mlx5dv_devx_uar* devx_uar(ibv_context* context) {
  return guarded([&]() -> mlx5dv_devx_uar* {
    auto uar = std::make_unique<DevxUar>();
    uar->page = nic_of(context).nic->pages.make_page();
    uar->base_addr = uar->page->base();
    uar->reg_addr = uar->page->reg(0);
    uar->page_id = uar->page->number;
    uar->mmap_off = 0;
    uar->comp_mask = 0;
    return uar.release();
  });
}

void devx_free_uar(mlx5dv_devx_uar* uar) { delete static_cast<DevxUar*>(uar); }

int devx_event_queue(ibv_context* context, std::uint32_t vector, std::uint32_t& number) {
  return as_errno([&] {
    nic_of(context);
    if (vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) return EINVAL;
    number = vector;
    return 0;
  });
}

mlx5dv_devx_obj* devx_create(ibv_context* context, const void* in, std::size_t in_size, void* out,
                             std::size_t out_size) {
  return guarded(
      [&] { return reinterpret_cast<mlx5dv_devx_obj*>(create_object(nic_of(context), in, in_size, out, out_size)); });
}

int devx_query(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size) {
  return as_errno([&] { return query_object(*reinterpret_cast<DevxObject*>(object), in, in_size, out, out_size); });
}

int devx_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out, std::size_t out_size) {
  return as_errno([&] { return modify_object(*reinterpret_cast<DevxObject*>(object), in, in_size, out, out_size); });
}

int devx_destroy(mlx5dv_devx_obj* object) { return destroy_object(reinterpret_cast<DevxObject*>(object)); }

mlx5dv_devx_event_channel* devx_event_channel(ibv_context* context) {
  return guarded([&]() -> mlx5dv_devx_event_channel* {
    nic_of(context);
    auto channel = std::make_unique<mlx5dv_devx_event_channel>();
    channel->fd = ::eventfd(0, EFD_CLOEXEC);
    if (channel->fd < 0) throw VerbsFailure{errno};
    return channel.release();
  });
}

void devx_free_event_channel(mlx5dv_devx_event_channel* channel) {
  ::close(channel->fd);
  delete channel;
}

ssize_t devx_event(mlx5dv_devx_event_channel* channel) {
  std::uint64_t never = 0;
  return ::read(channel->fd, &never, sizeof never) < 0 ? -1 : 0;
}

int devx_command(ibv_context* context, const void* in, std::size_t in_size, void* out, std::size_t out_size) {
  return as_errno([&] { return general_command(nic_of(context), in, in_size, out, out_size); });
}

}  // namespace gdrperf::softnic
