#include <fmt/format.h>

#include "host/process/process.h"
#include "memory/write_guard.h"
#include "paths/ways.h"

/// Memory that this process sees: its own, and what a peer shares in its window.
namespace gdrperf::softnic {
namespace {

class MappedWay final : public Way {
 public:
  const char* name() const noexcept override { return "window"; }
  std::string words() const override {
    return fmt::format(
        "registered pages are shared, the initiator copies{}",
        WriteGuard::available() ? "" : " (while a process has one thread: the kernel refuses userfaultfd)");
  }
  std::optional<std::string> obstacle(const Device& device) const override {
    if (device.config.move == MovePolicy::kNever) return "move=never";
    const char* obstacle = Process::get().mover().obstacle();
    return obstacle != nullptr ? obstacle : "";
  }
  std::optional<ibv_wc_status> put(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& from) const noexcept override {
    std::uint8_t* direct = in_gpu(from) ? nullptr : reach(target, region, address, from.total);
    if (direct == nullptr) return std::nullopt;
    if (needs_care(from)) return copy_failure(copy_within(direct, from), from, LocalUse::kRead);
    copy_pieces_to(direct, from.items, from.count);
    return IBV_WC_SUCCESS;
  }
  std::optional<ibv_wc_status> get(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& to) const noexcept override {
    const std::uint8_t* direct = in_gpu(to) ? nullptr : reach(target, region, address, to.total);
    if (direct == nullptr) return std::nullopt;
    if (needs_care(to)) return copy_failure(copy_within(to, direct), to, LocalUse::kWrite);
    copy_pieces_from(direct, to.items, to.count);
    return IBV_WC_SUCCESS;
  }
};

}  // namespace

const Way& mapped_way() noexcept {
  static const MappedWay way;
  return way;
}

}  // namespace gdrperf::softnic
