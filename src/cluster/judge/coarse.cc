#include "cluster/judge/coarse.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cluster/judge/membership.h"
#include "cluster/judge/robust.h"
#include "gdrperf/stats/shift.h"

namespace gdrperf::cluster {
namespace {

// With fewer of a kind nobody can say which is the odd one.
constexpr std::size_t kLeastGroups = 4;
constexpr std::size_t kLeastRails = 3;
constexpr std::size_t kLeastSamples = 4;
constexpr std::size_t kLeastOfPath = 8;
// A rail is slow when nearly all of its measurements are: beside a slow leaf of two, a
// quarter of the rail's are not.
constexpr double kRailQuantile = 0.9;

// Flows of its NICs that tell of a group.
enum class Flows { kAll, kWithin, kAcross };

// Group of each NIC, -1 for none; and what a group is.
struct Grouping {
  std::vector<int> of_nic;
  std::vector<Suspect> kinds;
};

// NICs under one key; groups of fewer than `least` nodes or NICs are dissolved.
template <typename Key, typename Describe>
Grouping group_by(const Fabric& fabric, int least, Key key, Describe describe) {
  std::map<std::pair<int, int>, int> sizes;
  for (const Nic& nic : fabric.nics) ++sizes[key(nic)];
  Grouping grouping;
  std::map<std::pair<int, int>, int> ids;
  for (const Nic& nic : fabric.nics) {
    const auto k = key(nic);
    if (sizes[k] < least) {
      grouping.of_nic.push_back(-1);
      continue;
    }
    const auto [it, fresh] = ids.try_emplace(k, static_cast<int>(grouping.kinds.size()));
    if (fresh) grouping.kinds.push_back(describe(nic));
    grouping.of_nic.push_back(it->second);
  }
  return grouping;
}

template <typename Visit>
void for_each_group(const Grouping& grouping, Flows flows, const Sample& sample, Visit visit) {
  const int from = grouping.of_nic[sample.from];
  const int to = grouping.of_nic[sample.to];
  if (flows != Flows::kAll && (from == to) != (flows == Flows::kWithin)) return;
  if (from >= 0) visit(static_cast<std::size_t>(from));
  if (to >= 0 && to != from) visit(static_cast<std::size_t>(to));
}

Grouped collect(const Grouping& grouping, Flows flows, const Residuals& residuals) {
  Grouped values(grouping.kinds.size());
  for (const Sample& sample : residuals.samples) {
    for_each_group(grouping, flows, sample, [&](std::size_t group) { values.count(group); });
  }
  values.layout();
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    for_each_group(grouping, flows, residuals.samples[i],
                   [&](std::size_t group) { values.add(group, residuals.left[i]); });
  }
  return values;
}

// A part slows a flow once, also where it has both ends of it.
void take_out(const Grouping& grouping, Flows flows, const std::vector<float>& shifts, Residuals& residuals) {
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    float explained = 0;
    for_each_group(grouping, flows, residuals.samples[i],
                   [&](std::size_t group) { explained = std::min(explained, shifts[group]); });
    residuals.left[i] -= explained;
  }
}

// Each group's effect against the others; 0 where too little was measured.
struct GroupShifts {
  std::vector<float> shift;
  std::vector<std::size_t> samples;
  double sigma = 0;
};

GroupShifts shifts_of(const Grouping& grouping, Flows flows, const Residuals& residuals) {
  Grouped values = collect(grouping, flows, residuals);
  GroupShifts result;
  std::vector<float> known;
  for (std::size_t i = 0; i < values.groups(); ++i) {
    result.samples.push_back(values.of(i).size());
    result.shift.push_back(quantile(values.of(i), kUpperQuartile));
    if (result.samples[i] >= kLeastSamples) known.push_back(result.shift[i]);
  }
  const Center center = robust_center(std::move(known));
  result.sigma = center.sigma;
  for (std::size_t i = 0; i < values.groups(); ++i) {
    result.shift[i] = result.samples[i] < kLeastSamples ? 0 : result.shift[i] - static_cast<float>(center.median);
  }
  return result;
}

// `agrees`: whether a group that is slow by so much may be called a part of this kind; without, it may.
void judge_grouping(const Grouping& grouping, Flows flows, const JudgeOptions& options,
                    const std::function<bool(std::size_t, double)>& agrees, Residuals& residuals,
                    Judgement& judgement) {
  if (grouping.kinds.size() < kLeastGroups) return;
  const GroupShifts found = shifts_of(grouping, flows, residuals);
  std::vector<float> shifts(found.shift.size(), 0);
  bool any = false;
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const double shift = found.shift[i];
    if (!is_suspect(shift, stats::judging_scatter(found.sigma, judgement.step), options) ||
        (agrees && !agrees(i, shift)))
      continue;
    Suspect suspect = grouping.kinds[i];
    suspect.shift = shift;
    suspect.sigmas = shift / std::max(stats::judging_scatter(found.sigma, judgement.step), kLeastSigma);
    suspect.samples = found.samples[i];
    judgement.suspects.push_back(suspect);
    shifts[i] = static_cast<float>(shift);
    any = true;
  }
  if (any) take_out(grouping, flows, shifts, residuals);
}

std::size_t nodes_of_group(const Fabric& fabric, int group) {
  std::set<int> nodes;
  for (const Nic& nic : fabric.nics) {
    if (group_of(nic) == group) nodes.insert(nic.node);
  }
  return nodes.size();
}

// Of two pods, what leaves one is the path to the other.
void judge_pods(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals, Judgement& judgement) {
  std::set<int> pods;
  for (const Nic& nic : fabric.nics) pods.insert(nic.pod);
  if (pods.contains(-1) || pods.size() < 3) return;
  const auto key = [](const Nic& nic) { return std::pair(nic.pod, nic.rail); };
  const auto describe = [](const Nic& nic) {
    Suspect suspect;
    suspect.part = Part::kPodUplink;
    suspect.pod = nic.pod;
    suspect.rail = nic.rail;
    return suspect;
  };
  judge_grouping(group_by(fabric, 3, key, describe), Flows::kAcross, options, {}, residuals, judgement);
}

// Between two groups on all rails, or on one.
void judge_paths(const Fabric& fabric, const JudgeOptions& options, bool by_rail, Residuals& residuals,
                 Judgement& judgement) {
  constexpr std::size_t kLeastPaths = 6;
  constexpr std::size_t kLeastNodes = 3;
  constexpr std::size_t kMostPaths = 8;
  std::map<std::tuple<int, int, int>, std::vector<std::size_t>> flows;  // of two groups and a rail
  std::map<int, std::size_t> nodes;
  for (const Nic& nic : fabric.nics) nodes.try_emplace(group_of(nic), 0);
  if (nodes.size() < 3 || nodes.contains(-1)) return;
  for (auto& [group, count] : nodes) count = nodes_of_group(fabric, group);
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    const Nic& from = fabric.nics[residuals.samples[i].from];
    const int one = group_of(from);
    const int other = group_of(fabric.nics[residuals.samples[i].to]);
    const int low = std::min(one, other);
    const int high = std::max(one, other);
    if (low == high || nodes[low] < kLeastNodes || nodes[high] < kLeastNodes) continue;
    flows[{low, high, by_rail ? from.rail : -1}].push_back(i);
  }
  std::erase_if(flows, [](const auto& one) { return one.second.size() < kLeastOfPath; });
  if (flows.size() < kLeastPaths) return;
  std::vector<float> known;
  std::vector<float> within;
  std::map<std::tuple<int, int, int>, float> shifts;
  for (const auto& [path, samples] : flows) {
    std::vector<float> values;
    for (const std::size_t i : samples) values.push_back(residuals.left[i]);
    const float shift = quantile(values, kUpperQuartile);
    known.push_back(shift);
    shifts[path] = shift;
    for (const float value : values) within.push_back(value - shift);
  }
  const Center center = robust_center(std::move(known));
  const double scatter = robust_center(std::move(within)).sigma;
  std::vector<Suspect> slow;
  for (const auto& [path, shift] : shifts) {
    const double against = shift - center.median;
    const std::vector<std::size_t>& samples = flows.at(path);
    const double error = kErrorOfQuartile * scatter / std::sqrt(static_cast<double>(samples.size()));
    const double sigma = stats::judging_scatter(std::max(center.sigma, error), judgement.step);
    if (!is_suspect(against, sigma, options)) continue;
    Suspect suspect;
    suspect.part = Part::kPath;
    const auto [low, high, rail] = path;
    const bool pods = fabric.nics[residuals.samples[samples.front()].from].pod >= 0;
    (pods ? suspect.pod : suspect.leaf) = low;
    suspect.other = high;
    suspect.rail = rail;
    suspect.shift = against;
    suspect.sigmas = against / std::max(sigma, kLeastSigma);
    suspect.samples = samples.size();
    slow.push_back(suspect);
  }
  std::sort(slow.begin(), slow.end(), [](const Suspect& a, const Suspect& b) { return a.shift < b.shift; });
  slow.resize(std::min(slow.size(), kMostPaths));
  for (const Suspect& suspect : slow) {
    const int own = suspect.pod >= 0 ? suspect.pod : suspect.leaf;
    for (const std::size_t i : flows.at({own, suspect.other, suspect.rail}))
      residuals.left[i] -= static_cast<float>(suspect.shift);
  }
  judgement.suspects.insert(judgement.suspects.end(), slow.begin(), slow.end());
}

// A leaf is slow to its own NICs, too; its uplinks only to those of other leaves.
void judge_leaves(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals, Judgement& judgement) {
  const auto key = [](const Nic& nic) { return std::pair(nic.leaf, nic.rail); };
  const auto describe = [](Part part) {
    return [part](const Nic& nic) {
      Suspect suspect;
      suspect.part = part;
      suspect.leaf = nic.leaf;
      suspect.rail = nic.rail;
      return suspect;
    };
  };
  const Grouping leaves = group_by(fabric, 3, key, describe(Part::kLeafRail));
  const GroupShifts within = shifts_of(leaves, Flows::kWithin, residuals);
  const auto is_slow_within = [&](std::size_t i, double shift) {
    return within.samples[i] < kLeastSamples || within.shift[i] < shift / 2;
  };
  judge_grouping(leaves, Flows::kAll, options, is_slow_within, residuals, judgement);
  judge_pods(fabric, options, residuals, judgement);
  const Grouping uplinks = group_by(fabric, 3, key, describe(Part::kUplink));
  judge_grouping(uplinks, Flows::kAcross, options, {}, residuals, judgement);
  for (const bool by_rail : {false, true}) judge_paths(fabric, options, by_rail, residuals, judgement);
}

}  // namespace

bool is_suspect(double shift, double sigma, const JudgeOptions& options) {
  return shift < std::log(1 - options.suspect_share) &&
         shift < -options.suspect_sigmas * std::max(sigma, kLeastSigma);
}

void judge_rails(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals,
                 Judgement& judgement) {
  // Between NICs of one node there are no rails to speak of.
  const bool one_node = is_one_node(fabric);
  const auto rail_of = [&](std::uint32_t nic) {
    return one_node ? 0u : static_cast<std::size_t>(fabric.nics[nic].rail);
  };
  std::size_t rails = 1;
  for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) rails = std::max(rails, rail_of(id) + 1);
  Grouped values(rails);
  for (const Sample& sample : residuals.samples) values.count(rail_of(sample.from));
  values.layout();
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    values.add(rail_of(residuals.samples[i].from), residuals.left[i]);
  }
  std::vector<float> known;
  for (std::size_t rail = 0; rail < rails; ++rail) {
    judgement.rail_base.push_back(quantile(values.of(rail), kRailQuantile));
    if (!values.of(rail).empty()) known.push_back(static_cast<float>(judgement.rail_base.back()));
  }
  const std::size_t count = known.size();
  const Center center = robust_center(std::move(known));
  for (std::size_t rail = 0; rail < rails && count >= kLeastRails; ++rail) {
    const double shift = judgement.rail_base[rail] - center.median;
    if (values.of(rail).empty() || !is_suspect(shift, stats::judging_scatter(center.sigma, judgement.step), options))
      continue;
    Suspect suspect;
    suspect.part = Part::kRail;
    suspect.rail = static_cast<int>(rail);
    suspect.shift = shift;
    suspect.sigmas = shift / std::max(stats::judging_scatter(center.sigma, judgement.step), kLeastSigma);
    suspect.samples = values.of(rail).size();
    judgement.suspects.push_back(suspect);
  }
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    residuals.left[i] -=
        static_cast<float>(judgement.rail_base[rail_of(residuals.samples[i].from)]);
  }
}

void judge_groups(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals,
                  Judgement& judgement) {
  const bool leaves = std::any_of(fabric.nics.begin(), fabric.nics.end(),
                                  [](const Nic& nic) { return nic.leaf >= 0; });
  if (leaves) judge_leaves(fabric, options, residuals, judgement);
  // A node of one NIC is that NIC.
  const auto key = [](const Nic& nic) { return std::pair(nic.node, 0); };
  const auto describe = [](const Nic& nic) {
    Suspect suspect;
    suspect.part = Part::kNode;
    suspect.node = nic.node;
    return suspect;
  };
  judge_grouping(group_by(fabric, 2, key, describe), Flows::kAll, options, {}, residuals, judgement);
}

}  // namespace gdrperf::cluster
