#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "device/device.h"
#include "memory/careful.h"
#include "memory/pieces.h"
#include "paths/target.h"

/// Way of a message.
namespace gdrperf::softnic {

/// One way for data between this process' memory and a target's. Thread-safe.
class Way {
 public:
  virtual const char* name() const noexcept = 0;
  /// Purpose, for people.
  virtual std::string words() const = 0;
  /// Obstacle for this device on this machine; empty: none. Nothing
  /// at all where there is no reason to speak of this way.
  virtual std::optional<std::string> obstacle(const Device& device) const = 0;

  /// Copies between the message and the target's memory from `address` on, which
  /// is in `region`, as its process sees it. Nothing, and nothing done: this way
  /// does not lead there, the next one may.
  virtual std::optional<ibv_wc_status> put(const Target& target, const MrShared& region, std::uint64_t address,
                                           const Pieces& from) const noexcept = 0;
  virtual std::optional<ibv_wc_status> get(const Target& target, const MrShared& region, std::uint64_t address,
                                           const Pieces& to) const noexcept = 0;

 protected:
  ~Way() = default;
};

/// All there are, in the order in which they are tried.
std::span<const Way* const> ways() noexcept;

const Way& mapped_way() noexcept;
const Way& gpu_way() noexcept;
const Way& kernel_way() noexcept;
const Way& agent_way() noexcept;
const Way& tcp_way() noexcept;

inline ibv_wc_status copy_failure(int error) noexcept {
  return error == 0 ? IBV_WC_SUCCESS : error == ESRCH ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_OP_ERR;
}
/// The same, after the kernel has copied: EFAULT may come from the memory of either end.
inline ibv_wc_status copy_failure(int error, const Pieces& local, LocalUse use) noexcept {
  return error == EFAULT && !is_mapped(local, use) ? IBV_WC_LOC_PROT_ERR : copy_failure(error);
}

/// By the first way that leads there.
ibv_wc_status put_by_ways(const Target& target, const MrShared& region, std::uint64_t address,
                          const Pieces& from) noexcept;
ibv_wc_status get_by_ways(const Target& target, const MrShared& region, std::uint64_t address,
                          const Pieces& to) noexcept;

/// The same, the first way in few instructions.
inline ibv_wc_status put(const Target& target, const MrShared& region, std::uint64_t iova,
                         const Pieces& from) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  std::uint8_t* direct = needs_care(from) ? nullptr : reach(target, region, address, from.total);
  if (direct == nullptr) [[unlikely]] return put_by_ways(target, region, address, from);
  copy_pieces_to(direct, from.items, from.count);
  return IBV_WC_SUCCESS;
}

inline ibv_wc_status get(const Target& target, const MrShared& region, std::uint64_t iova,
                         const Pieces& to) noexcept {
  const std::uint64_t address = region.addr + (iova - region.iova);
  const std::uint8_t* direct = needs_care(to) ? nullptr : reach(target, region, address, to.total);
  if (direct == nullptr) [[unlikely]] return get_by_ways(target, region, address, to);
  copy_pieces_from(direct, to.items, to.count);
  return IBV_WC_SUCCESS;
}

}  // namespace gdrperf::softnic
