#include "pieces.h"

#include "gpu_memory.h"

/// How a message gets to and from memory of another process that is not mapped
/// here: by the kernel, or, where it refuses, by the owner's agent.
namespace gdrperf::softnic {
namespace {

ibv_wc_status status_from(int error) noexcept { return error == 0 ? IBV_WC_SUCCESS : copy_failure(error); }

}  // namespace

ibv_wc_status put_afar(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& from) noexcept {
  Peer& peer = *target.peer;
  // Its process number, or what is in its memory, may be another program's.
  if (peer.gone()) return IBV_WC_RETRY_EXC_ERR;
  int error = EPERM;
  if (!in_gpu(region) && target.ask_kernel && !peer.kernel_refuses()) {
    error = in_gpu(from) ? gpu::copy_to_process(target.pid, address, from.items, from.count)
                         : copy_to_process(target.pid, address, from.items, from.count, from.total);
  }
  AgentLink* agent = peer.agent();
  if (is_refusal(error) && agent != nullptr) error = agent->copy_to(*target.segment, region, address, from);
  return status_from(error);
}

ibv_wc_status get_afar(const Target& target, const MrShared& region, std::uint64_t address, const Pieces& to) noexcept {
  Peer& peer = *target.peer;
  if (peer.gone()) return IBV_WC_RETRY_EXC_ERR;
  int error = EPERM;
  if (!in_gpu(region) && target.ask_kernel && !peer.kernel_refuses()) {
    error = in_gpu(to) ? gpu::copy_from_process(target.pid, address, to.items, to.count)
                       : copy_from_process(target.pid, address, to.items, to.count, to.total);
  }
  AgentLink* agent = peer.agent();
  if (is_refusal(error) && agent != nullptr) error = agent->copy_from(*target.segment, region, address, to);
  return status_from(error);
}

}  // namespace gdrperf::softnic
