#include "transport/rc/target_in.h"

#include <atomic>

namespace gdrperf::softnic {
namespace {

const std::atomic<bool> g_never_dead{false};

}  // namespace

Target target_in(Process& process, Peer* peer, KernelPolicy kernel) noexcept {
  Target target;
  if (peer == nullptr) {
    target.segment = &process.segment();
    target.regions = process.regions();
    target.dead = &g_never_dead;
    target.light_barrier = process.barrier_registered();
    return target;
  }
  target.segment = &peer->segment();
  target.regions = {peer->segment().mrs, peer->segment().mrs};
  target.dead = peer->dead_flag();
  target.peer = peer;
  target.window = peer->window();
  target.pid = peer->pid();
  target.ask_kernel = kernel == KernelPolicy::kAuto;
  target.light_barrier = process.barrier_registered() && peer->segment().header.owner_barrier != 0;
  return target;
}

}  // namespace gdrperf::softnic
