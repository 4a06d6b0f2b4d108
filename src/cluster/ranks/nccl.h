#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/wire/wire.h"
#include "gdrperf/engine/account.h"

namespace gdrperf::app {

/// GPUs of a maker ("cuda", "rocm") that this process sees, and its NCCL or RCCL; with `new_id` also what names a
/// communicator, whose meeting point is this process from then on. Throws no Error: says why there is none.
CollectiveReady find_nccl(const std::string& maker, bool new_id);

/// This process' GPUs in one all_reduce, each on a thread of its own: seconds of one, or why there is none, by GPU.
/// 5 rounds before those that count, as nccl-tests; every byte of the last one is compared. A communicator that does
/// not come to an end in its time is aborted. `account`: what GPU memory is taken from; null: no other run takes any.
std::vector<ClusterRate> run_all_reduce(const Collective& order, engine::Account* account);

}  // namespace gdrperf::app
