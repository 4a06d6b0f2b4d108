#include "paths/ways.h"

#include "gpu/memory.h"

/// How a message gets to and from memory of another process that is not mapped
/// here: by the kernel, or, where it refuses, by the owner's agent.
namespace gdrperf::softnic {
namespace {

/// By `through_kernel` or, where that may not be or is refused, `through_agent`;
/// each answers with an errno.
template <typename ThroughKernel, typename ThroughAgent>
ibv_wc_status carry(const Target& target, const MrShared& region, ThroughKernel through_kernel,
                    ThroughAgent through_agent) noexcept {
  Peer& peer = *target.peer;
  // Its process number, or what is in its memory, may be another program's.
  if (peer.gone()) return IBV_WC_RETRY_EXC_ERR;
  int error = EPERM;
  if (!in_gpu(region) && target.ask_kernel && !peer.kernel_refuses()) error = through_kernel();
  AgentLink* agent = peer.agent();
  if (is_refusal(error) && agent != nullptr) error = through_agent(*agent);
  return error == 0 ? IBV_WC_SUCCESS : copy_failure(error);
}

}  // namespace

ibv_wc_status put_unmapped(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& from) noexcept {
  return carry(target, region,
      [&] {
        return in_gpu(from) ? gpu::copy_to_process(target.pid, address, from.items, from.count)
                            : copy_to_process(target.pid, address, from.items, from.count, from.total);
      },
      [&](AgentLink& agent) { return agent.copy_to(target.regions, region, address, from); });
}

ibv_wc_status get_unmapped(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& to) noexcept {
  return carry(target, region,
      [&] {
        return in_gpu(to) ? gpu::copy_from_process(target.pid, address, to.items, to.count)
                          : copy_from_process(target.pid, address, to.items, to.count, to.total);
      },
      [&](AgentLink& agent) { return agent.copy_from(target.regions, region, address, to); });
}

}  // namespace gdrperf::softnic
