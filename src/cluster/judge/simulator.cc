#include "gdrperf/cluster/simulator.h"

#include <cmath>
#include <utility>

namespace gdrperf::cluster {
namespace {

bool lies_at(const Fault& fault, const Nic& nic) {
  return (fault.node < 0 || fault.node == nic.node) && (fault.rail < 0 || fault.rail == nic.rail) &&
         (fault.leaf < 0 || fault.leaf == nic.leaf);
}

}  // namespace

Simulator::Simulator(World world)
    : world_(std::move(world)),
      fabric_(uniform_fabric(world_.nodes, world_.rails, world_.nodes_per_leaf)),
      random_(world_.seed) {
  for (std::size_t i = 0; i < fabric_.nics.size(); ++i) {
    sends_.push_back(world_.nic_scatter * normal_(random_));
    receives_.push_back(world_.nic_scatter * normal_(random_));
  }
}

bool Simulator::hits(const Fault& fault, const Nic& from, const Nic& to) const {
  if (fault.uplink && from.leaf == to.leaf) return false;
  if (fault.peer >= 0) {
    return (lies_at(fault, from) && to.node == fault.peer) ||
           (lies_at(fault, to) && from.node == fault.peer);
  }
  return (fault.way != Fault::Way::kReceives && lies_at(fault, from)) ||
         (fault.way != Fault::Way::kSends && lies_at(fault, to));
}

float Simulator::measure(int from, int to) {
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  double factor = std::exp(sends_[a] + receives_[b] + world_.pair_scatter * normal_(random_));
  const auto uniform = [&] { return static_cast<double>(random_() >> 11) * 0x1p-53; };
  if (world_.collided > 0 && uniform() < world_.collided) {
    factor *= world_.collided_low + (world_.collided_high - world_.collided_low) * uniform();
  }
  for (const Fault& fault : world_.faults) {
    if (hits(fault, fabric_.nics[a], fabric_.nics[b])) factor *= fault.factor;
  }
  return static_cast<float>(world_.gbytes * factor);
}

void Simulator::measure(std::span<const Link> links, std::vector<Sample>& samples) {
  for (const Link& link : links) {
    const auto a = static_cast<std::uint32_t>(link.a);
    const auto b = static_cast<std::uint32_t>(link.b);
    samples.push_back({a, b, measure(link.a, link.b)});
    samples.push_back({b, a, measure(link.b, link.a)});
  }
}

}  // namespace gdrperf::cluster
