#include "gpu/driver.h"
#include "gpu/memory.h"
#include "paths/ways.h"

/// For a message with one end in a GPU, both of which this process sees.
namespace gdrperf::softnic {
namespace {

/// Address in this process of `address` of the target; null: it has none.
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

class GpuWay final : public Way {
 public:
  const char* name() const noexcept override { return "gpu"; }
  std::string words() const override { return "memory of GPUs: CUDA's driver copies"; }
  std::optional<std::string> obstacle(const Device&) const override {
    return gpu::driver() != nullptr ? std::optional<std::string>("") : std::nullopt;
  }
  std::optional<ibv_wc_status> put(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& from) const noexcept override {
    if (!in_gpu(region) && !in_gpu(from)) return std::nullopt;
    void* seen = seen_here(target, region, address, from.total);
    if (seen == nullptr) return std::nullopt;
    return copy_failure(gpu::copy_to(seen, own_region(target, region), from.items, from.count));
  }
  std::optional<ibv_wc_status> get(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& to) const noexcept override {
    if (!in_gpu(region) && !in_gpu(to)) return std::nullopt;
    const void* seen = seen_here(target, region, address, to.total);
    if (seen == nullptr) return std::nullopt;
    return copy_failure(gpu::copy_from(seen, own_region(target, region), to.items, to.count));
  }
};

}  // namespace

const Way& gpu_way() noexcept {
  static const GpuWay way;
  return way;
}

}  // namespace gdrperf::softnic
