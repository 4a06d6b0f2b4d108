#pragma once

#include <cstdint>

#include "shared/segment/layout.h"

/// Looking up regions and windows by their keys.
namespace gdrperf::softnic {

/// MrShared::pd of windows, which no region has.
inline constexpr std::uint32_t kWindowDomain = ~0u;

/// MrShared::pd of null MRs: no region that anybody finds. Their domain is in `window_pd`.
inline constexpr std::uint32_t kNullDomain = ~1u;

/// Nobody finds the region or window from now on, neither here nor from elsewhere.
void withdraw(const Regions& regions, const MrShared& region) noexcept;

/// A region that `key` names and that allows `access` to all of
/// [address, address + length); null otherwise.
[[gnu::always_inline]] inline const MrShared* find_region(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                                                          unsigned access, std::uint64_t address,
                                                          std::uint64_t length) noexcept {
  // No region has index 0.
  const std::uint32_t index = key >> 8;
  if (index - 1 >= kMaxMrs - 1) return nullptr;
  const MrShared& region = regions.known[index];
  if (region.key.load(std::memory_order_acquire) != key || region.pd != pd || (region.access & access) != access) {
    return nullptr;
  }
  const std::uint64_t offset = address - region.iova;
  return offset <= region.length && length <= region.length - offset ? &region : nullptr;
}

/// An lkey of memory that is nowhere.
bool is_null_region(const Regions& regions, std::uint32_t key, std::uint32_t pd) noexcept;

/// As find_region, for windows, on behalf of a peer that acts on the QP `qpn`.
const MrShared* find_window(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                            std::uint32_t qpn, unsigned access, std::uint64_t address,
                            std::uint64_t length) noexcept;
/// The window of type 2 with this key, if that QP may withdraw it; null otherwise.
const MrShared* find_withdrawable(const Regions& regions, std::uint32_t key, std::uint32_t pd,
                                  std::uint32_t qpn) noexcept;

}  // namespace gdrperf::softnic
