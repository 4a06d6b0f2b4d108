#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdrperf::cluster {

/// What a process has to know of its job; the rest goes over our own channel.
struct Launch {
  int rank = 0;
  int ranks = 1;
  std::string root;    ///< host of rank 0
  std::string origin;  ///< who says so: "Slurm", "OpenMPI", "--rank", ...
};

/// Typed values; they win over the environment.
struct LaunchByHand {
  std::optional<int> rank = {};
  std::optional<int> ranks = {};
  std::string root = {};
};

/// Value of an environment variable.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Rank, size and rank 0's address: as typed, else of torchrun (RANK,
/// WORLD_SIZE, MASTER_ADDR), OpenMPI, Slurm, a LeaderWorkerSet, an indexed Job
/// (which knows the rank alone): the first that has set anything. Throws
/// usage_error naming what is missing or wrong.
Launch find_launch(const LaunchByHand& by_hand, const Variables& variables);

/// "n3" of Slurm's "n[3-16,20],m1". Throws usage_error for what is no such list.
std::string first_host(std::string_view list);

/// Name of the leaf switch in Slurm's SLURM_TOPOLOGY_ADDR ("spine.leaf1.n3"); ""
/// without one.
std::string leaf_of(std::string_view topology_address);
/// Of the switch above that, where another is above it ("core.pod1.leaf1.n3").
std::string pod_of(std::string_view topology_address);

}  // namespace gdrperf::cluster
