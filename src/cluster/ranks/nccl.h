#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/wire/wire.h"
#include "gdrperf/engine/account.h"

namespace gdrperf::app {

/// NCCL, or for AMD's GPUs RCCL, as this machine has it, for memory of `gpu` ("cuda:0"); with `new_id` also what names
/// a communicator, whose meeting point is this process from then on. Never throws: says why there is none.
CollectiveReady find_nccl(const std::string& gpu, bool new_id);

/// This process' GPUs in one all_reduce, each on a thread of its own: seconds of one, or why there is none, by GPU.
/// 5 rounds before those that count, as nccl-tests; every byte of the last one is compared. A communicator that does
/// not come to an end in its time is aborted. `account`: what GPU memory is taken from; null: no other run takes any.
std::vector<ClusterRate> run_all_reduce(const Collective& order, engine::Account* account);

}  // namespace gdrperf::app
