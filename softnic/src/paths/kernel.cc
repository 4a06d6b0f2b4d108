#include <unistd.h>

#include <cstring>

#include <fmt/format.h>

#include "gpu/memory.h"
#include "paths/ways.h"

/// Host memory of another process that is not mapped here, or of this one that the program
/// may unmap: the kernel copies.
namespace gdrperf::softnic {
namespace {

class KernelWay final : public Way {
 public:
  const char* name() const noexcept override { return "kernel"; }
  std::string words() const override {
    return "memory that is not shared, by process_vm_writev and process_vm_readv";
  }
  std::optional<std::string> obstacle(const Device& device) const override {
    if (device.config.kernel == KernelPolicy::kNever) return "kernel=never";
    // A way refused even with oneself is not there; with a peer more may be.
    const int refusal = kernel_refusal(::getpid());
    return refusal != 0 ? fmt::format("process_vm_readv: {}", std::strerror(refusal)) : std::string();
  }
  std::optional<ibv_wc_status> put(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& from) const noexcept override {
    if (target.peer == nullptr) {
      if (in_gpu(region) || in_gpu(from)) return std::nullopt;
      return copy_failure(copy_within(reinterpret_cast<void*>(address), from), from, LocalUse::kRead);
    }
    // Its process number, or what is in its memory, may be another program's.
    if (target.peer->gone()) return IBV_WC_RETRY_EXC_ERR;
    if (!may_copy(target, region)) return std::nullopt;
    return result(target, in_gpu(from) ? gpu::copy_to_process(target.pid, address, from.items, from.count)
                                       : copy_to_process(target.pid, address, from.items, from.count, from.total),
                  from, LocalUse::kRead);
  }
  std::optional<ibv_wc_status> get(const Target& target, const MrShared& region, std::uint64_t address,
                                   const Pieces& to) const noexcept override {
    if (target.peer == nullptr) {
      if (in_gpu(region) || in_gpu(to)) return std::nullopt;
      return copy_failure(copy_within(to, reinterpret_cast<const void*>(address)), to, LocalUse::kWrite);
    }
    if (target.peer->gone()) return IBV_WC_RETRY_EXC_ERR;
    if (!may_copy(target, region)) return std::nullopt;
    return result(target, in_gpu(to) ? gpu::copy_from_process(target.pid, address, to.items, to.count)
                                     : copy_from_process(target.pid, address, to.items, to.count, to.total),
                  to, LocalUse::kWrite);
  }

 private:
  static bool may_copy(const Target& target, const MrShared& region) noexcept {
    return !in_gpu(region) && target.ask_kernel && !target.peer->kernel_refuses();
  }
  /// Refused: the peer's agent may do it, where there is one.
  static std::optional<ibv_wc_status> result(const Target& target, int error, const Pieces& local,
                                             LocalUse use) noexcept {
    if (is_refusal(error) && target.peer->agent() != nullptr) return std::nullopt;
    return copy_failure(error, local, use);
  }
};

}  // namespace

const Way& kernel_way() noexcept {
  static const KernelWay way;
  return way;
}

}  // namespace gdrperf::softnic
