#include "gdrperf/cluster/controls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cluster/judge/membership.h"
#include "cluster/judge/robust.h"

namespace gdrperf::cluster {
namespace {

// With fewer, NICs of nodes of which another NIC is suspect do as well.
constexpr std::size_t kEnough = 3;

// Nodes, or the NICs of the only one: what is busy as a whole while one of its links is measured.
int holder_of(const Fabric& fabric, bool one_node, std::size_t nic) {
  return one_node ? static_cast<int>(nic) : fabric.nics[nic].node;
}

// Pairs of free NICs on holders that `idle` lists, neighbours in it with each other.
Round paired(const Fabric& fabric, bool one_node, const std::vector<int>& idle, const std::vector<bool>& free) {
  Round controls;
  const NicIndex index(fabric);
  for (std::size_t i = 0; i + 1 < idle.size(); i += 2) {
    if (one_node) {
      controls.push_back({idle[i], idle[i + 1]});
      continue;
    }
    const auto& a = index.of(idle[i]);
    const auto& b = index.of(idle[i + 1]);
    for (std::size_t rail = 0; rail < std::min(a.size(), b.size()); ++rail) {
      if (a[rail] >= 0 && b[rail] >= 0 && free[static_cast<std::size_t>(a[rail])] &&
          free[static_cast<std::size_t>(b[rail])]) {
        controls.push_back({a[rail], b[rail]});
      }
    }
  }
  return controls;
}

}  // namespace

Round controls_of(const Round& round, const Fabric& fabric, const Judgement& judgement, const std::vector<bool>& gone,
                  std::mt19937_64& random) {
  const bool one_node = is_one_node(fabric);
  const std::vector<bool> good = good_nics(fabric, judgement);
  std::set<int> busy;
  for (const Link& link : round) {
    for (const int nic : {link.a, link.b}) busy.insert(holder_of(fabric, one_node, static_cast<std::size_t>(nic)));
  }
  std::map<int, bool> clean;  // idle holders, and whether all of their NICs are
  for (std::size_t id = 0; id < fabric.nics.size(); ++id) {
    const int holder = holder_of(fabric, one_node, id);
    if (busy.contains(holder) || is_gone(static_cast<int>(id), fabric, gone)) continue;
    const auto at = clean.try_emplace(holder, true).first;
    at->second = at->second && good[id];
  }
  Round controls;
  for (const bool all : {false, true}) {
    std::vector<int> idle;
    for (const auto& [holder, is_clean] : clean) {
      if (is_clean || (all && !one_node)) idle.push_back(holder);
    }
    for (std::size_t i = idle.size(); i > 1; --i) std::swap(idle[i - 1], idle[random() % i]);
    // Beside nodes with a suspect, chance may pair fewer.
    Round found = paired(fabric, one_node, idle, good);
    if (found.size() > controls.size()) controls = std::move(found);
    if (controls.size() >= kEnough) break;
  }
  return controls;
}

std::optional<double> common_shift(std::span<const Sample> controls, const Fabric& fabric, const Judgement& judgement) {
  if (controls.empty() || judgement.rail_base.empty()) return std::nullopt;
  std::vector<float> left;
  for (const Sample& sample : controls) left.push_back(unexpected(sample, fabric, judgement));
  // Some collide, as before; where most are far below, all are slower than they were.
  const auto first_far =
      std::partition(left.begin(), left.end(), [&](float value) { return value >= judgement.far_below; });
  if (2 * (first_far - left.begin()) >= static_cast<std::ptrdiff_t>(left.size())) left.erase(first_far, left.end());
  return robust_center(std::move(left)).median;
}

float unexpected(const Sample& sample, const Fabric& fabric, const Judgement& judgement) {
  const auto rail = static_cast<std::size_t>(fabric.nics[sample.from].rail);
  const double base = judgement.rail_base[std::min(rail, judgement.rail_base.size() - 1)];
  return static_cast<float>(std::log(sample.gbytes) - base - judgement.sends[sample.from].shift -
                            judgement.receives[sample.to].shift - judgement.pair_center);
}

}  // namespace gdrperf::cluster
