#include "gdrperf/cluster/launch.h"

#include <charconv>

#include <fmt/format.h>

#include "gdrperf/base/error.h"
#include "gdrperf/cluster/exchange.h"
#include "cluster/plan/rank_flags.h"

namespace gdrperf::cluster {
namespace {

constexpr int kMostRanks = 1 << 20;

// One launcher's variables; "" where it has none for that.
struct Launcher {
  const char* name;
  std::vector<const char*> rank;   ///< the first that is set counts
  std::vector<const char*> ranks;
  const char* root;
};

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> all = {
      {"torchrun", {"RANK"}, {"WORLD_SIZE"}, "MASTER_ADDR"},
      {"OpenMPI", {"OMPI_COMM_WORLD_RANK"}, {"OMPI_COMM_WORLD_SIZE"}, ""},
      {"Slurm", {"SLURM_PROCID"}, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, ""},
      {"LeaderWorkerSet", {"LWS_WORKER_INDEX"}, {"LWS_GROUP_SIZE"}, "LWS_LEADER_ADDRESS"},
      {"indexed Job", {"JOB_COMPLETION_INDEX"}, {}, ""},
  };
  return all;
}

struct Found {
  std::string name;  ///< of the variable
  std::string value;
};

std::optional<Found> first_set(const std::vector<const char*>& names, const Variables& variables) {
  for (const char* name : names) {
    if (auto value = variables(name)) return Found{name, *value};
  }
  return std::nullopt;
}

int to_number(const Found& found, int low, int high) {
  int value = 0;
  const char* end = found.value.data() + found.value.size();
  const auto [at, error] = std::from_chars(found.value.data(), end, value);
  if (error != std::errc() || at != end || value < low || value > high) {
    throw usage_error(fmt::format("{} is '{}': a whole number from {} to {} is needed", found.name,
                                  found.value, low, high),
                      "or " + type_ranks());
  }
  return value;
}

// Everything on one host, or mpirun's own host where rank 0 runs beside it.
std::string openmpi_root(int rank, int ranks, const Variables& variables) {
  if (variables("OMPI_COMM_WORLD_LOCAL_SIZE") == std::to_string(ranks)) return "127.0.0.1";
  const std::string head = variables("OMPI_MCA_orte_hnp_uri").value_or("");
  const auto tcp = head.find("tcp://");
  if (rank == 0 && variables("OMPI_MCA_orte_local_daemon_uri").value_or("") != head) return {};
  if (tcp == std::string::npos) return {};
  const std::string rest = head.substr(tcp + 6);
  return rest.substr(0, rest.find_first_of(",:;"));
}

std::string root_from(const Launcher& launcher, int rank, int ranks, const Variables& variables) {
  const std::string_view name = launcher.name;
  if (name == "OpenMPI") return openmpi_root(rank, ranks, variables);
  if (name == "Slurm") {
    for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
      if (const auto hosts = variables(list)) return first_host(*hosts);
    }
    return {};
  }
  return *launcher.root == '\0' ? std::string() : variables(launcher.root).value_or("");
}

// Process managers that exchange() spoke to in vain, or not at all.
void refuse_half_of_a_manager(const Variables& variables) {
  for (const char* name : {"PMI_RANK", "PMI_SIZE"}) {
    if (!variables(name) || variables("PMI_FD")) continue;
    throw usage_error(fmt::format("{} is set but PMI_FD is not: half of PMI-1's environment", name),
                      "start all ranks with one mpiexec, or " + type_ranks());
  }
  if (!variables("PMIX_RANK")) return;
  throw usage_error(has_pmix() ? "PMIX_RANK is set, but no PMIx server answers, or libpmix.so.2 is not here"
                               : "PMIX_RANK is set, but this gdrperf was built without PMIx",
                    "start all ranks with one mpirun or srun --mpi=pmix, or " + type_ranks());
}

Launch by_hand_alone(const LaunchByHand& by_hand, const Variables& variables) {
  const bool whole = by_hand.rank && by_hand.ranks && !by_hand.root.empty();
  if (!whole && (by_hand.rank || by_hand.ranks || !by_hand.root.empty())) {
    throw usage_error(fmt::format("{} is missing: without a launcher's environment {}, {} and {} belong together",
                                  !by_hand.rank    ? flags::kRank
                                  : !by_hand.ranks ? flags::kRanks
                                                   : flags::kRoot,
                                  flags::kRank, flags::kRanks, flags::kRoot),
                      fmt::format("rank 0 on the host that {} names, one process per node", flags::kRoot));
  }
  if (!whole) {
    refuse_half_of_a_manager(variables);
    throw usage_error(
        "no launcher has set a rank here (torchrun, PMIx, PMI-1, OpenMPI, Slurm, LeaderWorkerSet, indexed Job)",
        "start it with srun or mpirun, one process per node, or " + type_ranks());
  }
  return {*by_hand.rank, *by_hand.ranks, by_hand.root, flags::kRank};
}

const char* name_of(const std::vector<const char*>& names) {
  return names.empty() ? flags::kRanks : names.front();
}

}  // namespace

Launch find_launch(const LaunchByHand& by_hand, const Variables& variables) {
  Launch launch;
  const Launcher* set = nullptr;
  for (const Launcher& launcher : launchers()) {
    if (first_set(launcher.rank, variables) || first_set(launcher.ranks, variables)) {
      set = &launcher;
      break;
    }
  }
  if (set == nullptr || (by_hand.rank && by_hand.ranks && !by_hand.root.empty())) {
    launch = by_hand_alone(by_hand, variables);
  } else {
    const auto rank = first_set(set->rank, variables);
    const auto ranks = first_set(set->ranks, variables);
    if (!rank && !by_hand.rank) {
      throw usage_error(fmt::format("{} is set but {} is not: half of {}'s environment",
                                    ranks->name, name_of(set->rank), set->name),
                        "or " + type_ranks());
    }
    if (!ranks && !by_hand.ranks) {
      throw usage_error(fmt::format("{} is set but {} is not: the number of ranks is not known",
                                    rank->name, name_of(set->ranks)),
                        fmt::format("give it with {}", flags::kRanks));
    }
    launch.ranks = by_hand.ranks ? *by_hand.ranks : to_number(*ranks, 1, kMostRanks);
    launch.rank = by_hand.rank ? *by_hand.rank : to_number(*rank, 0, kMostRanks);
    launch.root = by_hand.root.empty() ? root_from(*set, launch.rank, launch.ranks, variables) : by_hand.root;
    launch.origin = set->name;
  }
  if (launch.rank < 0 || launch.ranks < 1 || launch.rank >= launch.ranks) {
    throw usage_error(fmt::format("rank {} of {} ({}): ranks count from 0 to one below their number",
                                  launch.rank, launch.ranks, launch.origin),
                      "or " + type_ranks());
  }
  if (launch.root.empty()) {
    throw usage_error(fmt::format("{} does not name the host of rank 0", launch.origin),
                      fmt::format("name its host with {} HOST[:PORT]", flags::kRoot));
  }
  return launch;
}

std::string first_host(std::string_view list) {
  const auto end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  std::string_view rest = end == std::string_view::npos ? std::string_view() : list.substr(end);
  // Several brackets may follow each other: "rack[1-2]n[1-8]".
  while (rest.starts_with('[')) {
    const auto close = rest.find(']');
    if (close == std::string_view::npos) {
      throw usage_error(fmt::format("the list of nodes '{}' has a '[' without ']'", list));
    }
    const std::string_view inside = rest.substr(1, close - 1);
    host += inside.substr(0, inside.find_first_of(",-"));
    rest.remove_prefix(close + 1);
    const auto next = rest.find_first_of(",[");
    host += rest.substr(0, next);
    rest = next == std::string_view::npos ? std::string_view() : rest.substr(next);
  }
  if (host.empty()) throw usage_error(fmt::format("the list of nodes '{}' names no node", list));
  return host;
}

std::string leaf_of(std::string_view topology_address) {
  const auto last = topology_address.rfind('.');
  if (last == std::string_view::npos) return {};
  const std::string_view switches = topology_address.substr(0, last);
  return std::string(switches.substr(switches.rfind('.') + 1));
}

std::string pod_of(std::string_view topology_address) {
  const auto last = topology_address.rfind('.');
  const auto leaf = last == std::string_view::npos || last == 0 ? last : topology_address.rfind('.', last - 1);
  if (leaf == std::string_view::npos || leaf == 0) return {};
  const std::string_view above = topology_address.substr(0, leaf);
  const auto pod = above.rfind('.');
  return pod == std::string_view::npos ? std::string() : std::string(above.substr(pod + 1));
}

}  // namespace gdrperf::cluster
