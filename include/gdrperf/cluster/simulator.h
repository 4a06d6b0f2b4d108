#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::cluster {

/// Slows what it matches: -1 matches any. A flow that it touches at either end
/// is slowed once.
struct Fault {
  int node = -1;
  int rail = -1;
  int leaf = -1;
  int peer = -1;  ///< node; with it only the pair of both is slow
  enum class Way { kBoth, kSends, kReceives } way = Way::kBoth;
  double factor = 1;  ///< of the rate: 0.9 is 10 % slow
  bool uplink = false;  ///< only what leaves the leaf
  double duty = 1;      ///< share of the measurements that it slows, at random
  int pod = -1;         ///< only what leaves this pod
  int path = -1;        ///< only what goes between this pod (or leaf, without pods) and `other`
  int other = -1;
  int spine = -1;       ///< with `uplink`: only what goes through this of World::spines
};

/// A cluster that is not there. The scatters are standard deviations of the
/// rate's logarithm.
struct World {
  int nodes = 8;
  int rails = 1;
  int nodes_per_leaf = 0;
  int leaves_per_pod = 0;
  double gbytes = 50;
  double nic_scatter = 0.005;   ///< of a NIC, for good, each way
  double pair_scatter = 0.01;   ///< of each measurement
  double collided = 0;          ///< share of measurements that meet another flow in the fabric
  double collided_low = 0.4;    ///< and what they have left, uniform
  double collided_high = 0.95;
  int spines = 1;               ///< between leaves; each flow takes one at random
  int drift_from = -1;          ///< round from which on everything is `drift` times as fast; -1: never
  double drift = 1;
  double tenants = 0;           ///< share of the nodes that somebody else slows, drawn anew for each round
  double tenants_low = 0.5;     ///< and what they have left, uniform
  double tenants_high = 0.9;
  double step = 0;              ///< of the logarithm: rates are rounded to multiples, as by a coarse clock
  std::vector<Fault> faults = {};
  std::uint64_t seed = 1;
};

/// Measures like the cluster that `world` describes would. A link that is measured again
/// collides anew: new QPs take new paths through the fabric.
class Simulator {
 public:
  explicit Simulator(World world);
  const Fabric& fabric() const { return fabric_; }
  float measure(int from, int to);
  /// Both directions of all links, as the next round.
  void measure(std::span<const Link> links, std::vector<Sample>& samples);
  /// What settle() retests with; the two directions of a round are one after the other.
  Measurer measurer();

 private:
  bool hits(const Fault& fault, const Nic& from, const Nic& to, int spine) const;
  void begin_round();
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  World world_;
  Fabric fabric_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> sends_;  ///< by NIC, of the logarithm
  std::vector<double> receives_;
  std::vector<double> tenants_;  ///< factor by node, in this round
  int round_ = -1;
  int ways_ = 0;                 ///< of measurer(), so far
};

}  // namespace gdrperf::cluster
