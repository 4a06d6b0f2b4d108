#include "paths/ways.h"

#include <array>

namespace gdrperf::softnic {

std::span<const Way* const> ways() noexcept {
  static const std::array<const Way*, 5> all = {&mapped_way(), &gpu_way(), &kernel_way(), &agent_way(), &tcp_way()};
  return all;
}

namespace {

template <typename Try>
ibv_wc_status first_that_leads(const Target& target, Try attempt) noexcept {
  for (const Way* way : ways()) {
    if (const auto status = attempt(*way)) return *status;
  }
  return target.peer != nullptr && target.peer->gone() ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_OP_ERR;
}

}  // namespace

ibv_wc_status put_by_ways(const Target& target, const MrShared& region, std::uint64_t address,
                          const Pieces& from) noexcept {
  return first_that_leads(target, [&](const Way& way) { return way.put(target, region, address, from); });
}

ibv_wc_status get_by_ways(const Target& target, const MrShared& region, std::uint64_t address,
                          const Pieces& to) noexcept {
  return first_that_leads(target, [&](const Way& way) { return way.get(target, region, address, to); });
}

}  // namespace gdrperf::softnic
