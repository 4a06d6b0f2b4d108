#pragma once

#include <cstdint>
#include <span>

#include "cm/state/manager.h"

namespace gdrperf::softnic {

/// Does what a program writes to its descriptor `fd` of `channel`: a command of
/// rdma_user_cm.h, whose answer goes where the command says. Returns 0 or a negative
/// errno. Waits for events as the kernel does; a signal ends that.
int run_cm_command(Cm& cm, std::uint64_t channel, int fd, std::span<const std::uint8_t> bytes);

}  // namespace gdrperf::softnic
