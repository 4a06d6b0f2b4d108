#include "gdrperf/cluster/simulator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cluster/judge/membership.h"

namespace gdrperf::cluster {
namespace {

bool lies_at(const Fault& fault, const Nic& nic) {
  return (fault.node < 0 || fault.node == nic.node) && (fault.rail < 0 || fault.rail == nic.rail) &&
         (fault.leaf < 0 || fault.leaf == nic.leaf);
}

}  // namespace

Simulator::Simulator(World world)
    : world_(std::move(world)),
      fabric_(uniform_fabric(world_.nodes, world_.rails, world_.nodes_per_leaf, world_.leaves_per_pod)),
      random_(world_.seed) {
  for (std::size_t i = 0; i < fabric_.nics.size(); ++i) {
    sends_.push_back(world_.nic_scatter * normal_(random_));
    receives_.push_back(world_.nic_scatter * normal_(random_));
  }
}

bool Simulator::hits(const Fault& fault, const Nic& from, const Nic& to, int spine) const {
  if (fault.uplink && from.leaf == to.leaf) return false;
  if (fault.spine >= 0 && fault.spine != spine) return false;
  const bool on_rail = fault.rail < 0 || fault.rail == from.rail;
  if (fault.pod >= 0) return on_rail && from.pod != to.pod && (from.pod == fault.pod || to.pod == fault.pod);
  if (fault.path >= 0) {
    return on_rail && std::minmax(group_of(from), group_of(to)) == std::minmax(fault.path, fault.other);
  }
  if (fault.peer >= 0) {
    return (lies_at(fault, from) && to.node == fault.peer) ||
           (lies_at(fault, to) && from.node == fault.peer);
  }
  return (fault.way != Fault::Way::kReceives && lies_at(fault, from)) ||
         (fault.way != Fault::Way::kSends && lies_at(fault, to));
}

void Simulator::begin_round() {
  ++round_;
  tenants_.assign(static_cast<std::size_t>(world_.nodes), 1);
  for (double& left : tenants_) {
    if (world_.tenants > 0 && uniform() < world_.tenants)
      left = world_.tenants_low + (world_.tenants_high - world_.tenants_low) * uniform();
  }
}

float Simulator::measure(int from, int to) {
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  double factor = std::exp(sends_[a] + receives_[b] + world_.pair_scatter * normal_(random_));
  if (world_.collided > 0 && uniform() < world_.collided) {
    factor *= world_.collided_low + (world_.collided_high - world_.collided_low) * uniform();
  }
  const int spine = world_.spines > 1 ? static_cast<int>(random_() % static_cast<std::uint64_t>(world_.spines)) : 0;
  for (const Fault& fault : world_.faults) {
    if (hits(fault, fabric_.nics[a], fabric_.nics[b], spine) && (fault.duty >= 1 || uniform() < fault.duty))
      factor *= fault.factor;
  }
  if (!tenants_.empty()) {
    factor *= std::min(tenants_[static_cast<std::size_t>(fabric_.nics[a].node)],
                       tenants_[static_cast<std::size_t>(fabric_.nics[b].node)]);
  }
  if (world_.drift_from >= 0 && round_ >= world_.drift_from) factor *= world_.drift;
  if (world_.step > 0) factor = std::exp(world_.step * std::round(std::log(factor) / world_.step));
  return static_cast<float>(world_.gbytes * factor);
}

void Simulator::measure(std::span<const Link> links, std::vector<Sample>& samples) {
  begin_round();
  const auto moment = static_cast<std::uint32_t>(2 * round_);
  for (const Link& link : links) {
    const auto a = static_cast<std::uint32_t>(link.a);
    const auto b = static_cast<std::uint32_t>(link.b);
    samples.push_back({a, b, measure(link.a, link.b), moment});
    samples.push_back({b, a, measure(link.b, link.a), moment + 1});
  }
}

Measurer Simulator::measurer() {
  Measurer measurer;
  measurer.one_way = [this](const Round& round, std::vector<Sample>& samples) {
    if (ways_++ % 2 == 0) begin_round();
    for (const Link& link : round) {
      samples.push_back(
          {static_cast<std::uint32_t>(link.a), static_cast<std::uint32_t>(link.b), measure(link.a, link.b)});
    }
  };
  return measurer;
}

}  // namespace gdrperf::cluster
