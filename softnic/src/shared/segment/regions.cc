#include "shared/segment/regions.h"

namespace gdrperf::softnic {
namespace {

/// The window of that key and domain. Its other members may be read only after
/// the key has been found to be this one: who binds a window writes the key last.
const MrShared* window_of(const Regions& regions, std::uint32_t key, std::uint32_t pd) noexcept {
  const std::uint32_t index = key >> 8;
  if (index >= kMaxMrs || key == 0) return nullptr;
  const MrShared& window = regions.known[index];
  const bool found = window.key.load(std::memory_order_acquire) == key && window.pd == kWindowDomain &&
                     window.window_pd == pd && regions.published[index].key.load(std::memory_order_acquire) == key;
  return found ? &window : nullptr;
}

}  // namespace

const MrShared* find_window(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                            std::uint32_t qpn, unsigned access, std::uint64_t address,
                            std::uint64_t length) noexcept {
  const MrShared* window = window_of(regions, key, pd);
  if (window == nullptr || (window->qpn != 0 && window->qpn != qpn)) return nullptr;
  const std::uint64_t offset = address - window->iova;
  const bool inside = offset <= window->length && length <= window->length - offset;
  return inside && (window->access & access) == access ? window : nullptr;
}

const MrShared* find_withdrawable(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                                  std::uint32_t qpn) noexcept {
  const MrShared* window = window_of(regions, key, pd);
  return window != nullptr && window->qpn == qpn ? window : nullptr;
}

void withdraw(const Regions& regions, const MrShared& region) noexcept {
  // Of a peer's both are the same. What a process knows of its own it may change.
  const_cast<MrShared&>(region).key.store(0);
  regions.published[regions.index_of(region)].key.store(0);
}

bool is_null_region(const Regions& regions, std::uint32_t key, std::uint32_t pd) noexcept {
  const std::uint32_t index = key >> 8;
  if (index >= kMaxMrs || key == 0) return false;
  const MrShared& region = regions.known[index];
  return region.key.load(std::memory_order_acquire) == key && region.pd == kNullDomain && region.window_pd == pd;
}

}  // namespace gdrperf::softnic
