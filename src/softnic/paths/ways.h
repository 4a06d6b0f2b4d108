#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "memory/pieces.h"
#include "paths/target.h"

/// How a message gets across.
namespace gdrperf::softnic {

inline ibv_wc_status copy_failure(int error) noexcept {
  return error == ESRCH ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_OP_ERR;
}

/// put() and get() where a GPU has part in it (gpu.cc).
ibv_wc_status put_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& from) noexcept;
ibv_wc_status get_with_gpu(const Target& target, const MrShared& region, std::uint64_t address,
                           const Pieces& to) noexcept;

/// put() and get() where this process does not see the peer's memory: the kernel
/// copies, or the peer's agent (unmapped.cc).
ibv_wc_status put_unmapped(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& from) noexcept;
ibv_wc_status get_unmapped(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& to) noexcept;

inline ibv_wc_status put(const Target& target, const MrShared& region, std::uint64_t iova,
                  const Pieces& from) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  if (in_gpu(region) || in_gpu(from)) [[unlikely]] return put_with_gpu(target, region, address, from);
  std::uint8_t* direct = reach(target, region, address, from.total);
  if (direct != nullptr) {
    copy_pieces_to(direct, from.items, from.count);
    return IBV_WC_SUCCESS;
  }
  return put_unmapped(target, region, address, from);
}

inline ibv_wc_status get(const Target& target, const MrShared& region, std::uint64_t iova,
                  const Pieces& to) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  if (in_gpu(region) || in_gpu(to)) [[unlikely]] return get_with_gpu(target, region, address, to);
  const std::uint8_t* direct = reach(target, region, address, to.total);
  if (direct != nullptr) {
    copy_pieces_from(direct, to.items, to.count);
    return IBV_WC_SUCCESS;
  }
  return get_unmapped(target, region, address, to);
}

}  // namespace gdrperf::softnic
