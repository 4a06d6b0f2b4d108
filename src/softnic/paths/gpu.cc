#include "gpu/memory.h"
#include "paths/ways.h"

/// How a message gets across where one end of it is in a GPU.
namespace gdrperf::softnic {
namespace {

/// Where this process sees `address` of the target; null: it does not.
void* seen_here(const Target& target, const MrShared& region, std::uint64_t address, std::uint64_t length) noexcept {
  if (target.peer == nullptr) return reinterpret_cast<void*>(address);
  if (!in_gpu(region)) return reach(target, region, address, length);
  const GpuRegion there = target.segment->gpu_regions[target.regions.index_of(region)];
  return gpu::open(target.peer, target.pid, there, address, length);
}

/// The region, where it is host memory of this process.
const MrShared* own_region(const Target& target, const MrShared& region) noexcept {
  return target.peer == nullptr && !in_gpu(region) ? &region : nullptr;
}

}  // namespace

ibv_wc_status put_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& from) noexcept {
  void* seen = seen_here(target, region, address, from.total);
  if (seen == nullptr) return put_unmapped(target, region, address, from);
  const int error = gpu::copy_to(seen, own_region(target, region), from.items, from.count);
  return error == 0 ? IBV_WC_SUCCESS : copy_failure(error);
}

ibv_wc_status get_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& to) noexcept {
  const void* seen = seen_here(target, region, address, to.total);
  if (seen == nullptr) return get_unmapped(target, region, address, to);
  const int error = gpu::copy_from(seen, own_region(target, region), to.items, to.count);
  return error == 0 ? IBV_WC_SUCCESS : copy_failure(error);
}

}  // namespace gdrperf::softnic
