#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/topo/expected.h"
#include "cluster/ranks/job.h"
#include "gdrperf/cluster/launch.h"
#include "gdrperf/cluster/patterns.h"

namespace CLI {
class App;
}

namespace gdrperf::app {

inline constexpr int kClusterPort = 18525;
/// More measurements than that are in a file beside the document.
inline constexpr std::size_t kMostInDocument = 100'000;

/// Nodes up to which every pair is measured: 19 rounds of five runs, some 40 s.
inline constexpr int kAllPairsUpTo = 20;
/// With --quick. Fewer judge nobody.
inline constexpr int kQuickRounds = 4;

/// Options of `gdrperf cluster`.
struct ClusterOptions {
  cluster::LaunchByHand by_hand;
  int port = kClusterPort;
  std::vector<std::string> devices;
  std::string leaf;
  std::string topology;
  std::string hosts;
  std::vector<cluster::Pattern> patterns;
  std::string json;
  std::string format;
  std::string from;
  std::string resume;
  std::string baseline;
  std::string token;
  Expected expected;
  ClusterTest test = {.schedule = {.all_pairs_up_to = kAllPairsUpTo}};
  bool quick = false;
  std::chrono::nanoseconds start_patience = std::chrono::seconds(60);
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);
  int fanout = 0;  ///< of the tree; 0: by the number of ranks
  bool compact = false;
  bool plan = false;
  int rails = 1;
  std::optional<double> rate;  ///< of a NIC, bytes/s; --plan has a default
};

void add_cluster_options(CLI::App& command, const std::shared_ptr<ClusterOptions>& options);

}  // namespace gdrperf::app
