#include "coarse.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "robust.h"

namespace gdrperf::cluster {
namespace {

// With fewer of a kind nobody can say which is the odd one.
constexpr std::size_t kLeastGroups = 4;
constexpr std::size_t kLeastRails = 3;
constexpr std::size_t kLeastSamples = 4;
// A rail is slow when nearly all of its measurements are: beside a slow leaf of two, a
// quarter of the rail's are not.
constexpr double kRailQuantile = 0.9;

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
void for_each_group(const Grouping& grouping, const Sample& sample, Visit visit) {
  const int from = grouping.of_nic[sample.from];
  const int to = grouping.of_nic[sample.to];
  if (from >= 0) visit(static_cast<std::size_t>(from));
  if (to >= 0 && to != from) visit(static_cast<std::size_t>(to));
}

Grouped collect(const Grouping& grouping, const Residuals& residuals) {
  Grouped values(grouping.kinds.size());
  for (const Sample& sample : residuals.samples) {
    for_each_group(grouping, sample, [&](std::size_t group) { values.count(group); });
  }
  values.layout();
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    for_each_group(grouping, residuals.samples[i],
                   [&](std::size_t group) { values.add(group, residuals.left[i]); });
  }
  return values;
}

// A part slows a flow once, also where it has both ends of it.
void take_out(const Grouping& grouping, const std::vector<float>& shifts, Residuals& residuals) {
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    float explained = 0;
    for_each_group(grouping, residuals.samples[i],
                   [&](std::size_t group) { explained = std::min(explained, shifts[group]); });
    residuals.left[i] -= explained;
  }
}

void judge_grouping(const Grouping& grouping, const JudgeOptions& options, Residuals& residuals,
                    Judgement& judgement) {
  if (grouping.kinds.size() < kLeastGroups) return;
  Grouped values = collect(grouping, residuals);
  std::vector<float> upper(values.groups());
  std::vector<float> known;
  for (std::size_t i = 0; i < values.groups(); ++i) {
    upper[i] = quantile(values.of(i), kUpperQuartile);
    if (values.of(i).size() >= kLeastSamples) known.push_back(upper[i]);
  }
  const Center center = robust_center(std::move(known));
  std::vector<float> shifts(values.groups(), 0);
  bool any = false;
  for (std::size_t i = 0; i < values.groups(); ++i) {
    const double shift = upper[i] - center.median;
    if (values.of(i).size() < kLeastSamples || !is_suspect(shift, center.sigma, options)) continue;
    Suspect suspect = grouping.kinds[i];
    suspect.shift = shift;
    suspect.sigmas = shift / std::max(center.sigma, kLeastSigma);
    suspect.samples = values.of(i).size();
    judgement.suspects.push_back(suspect);
    shifts[i] = static_cast<float>(shift);
    any = true;
  }
  if (any) take_out(grouping, shifts, residuals);
}

}  // namespace

bool is_suspect(double shift, double sigma, const JudgeOptions& options) {
  return shift < std::log(1 - options.suspect_share) &&
         shift < -options.suspect_sigmas * std::max(sigma, kLeastSigma);
}

void judge_rails(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals,
                 Judgement& judgement) {
  // Between NICs of one node there are no rails to speak of.
  const bool one_node = std::all_of(fabric.nics.begin(), fabric.nics.end(),
                                    [&](const Nic& nic) { return nic.node == fabric.nics[0].node; });
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
    if (values.of(rail).empty() || !is_suspect(shift, center.sigma, options)) continue;
    Suspect suspect;
    suspect.part = Part::kRail;
    suspect.rail = static_cast<int>(rail);
    suspect.shift = shift;
    suspect.sigmas = shift / std::max(center.sigma, kLeastSigma);
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
  if (leaves) {
    const auto key = [](const Nic& nic) { return std::pair(nic.leaf, nic.rail); };
    const auto describe = [](const Nic& nic) {
      Suspect suspect;
      suspect.part = Part::kLeafRail;
      suspect.leaf = nic.leaf;
      suspect.rail = nic.rail;
      return suspect;
    };
    judge_grouping(group_by(fabric, 3, key, describe), options, residuals, judgement);
  }
  // A node of one NIC is that NIC.
  const auto key = [](const Nic& nic) { return std::pair(nic.node, 0); };
  const auto describe = [](const Nic& nic) {
    Suspect suspect;
    suspect.part = Part::kNode;
    suspect.node = nic.node;
    return suspect;
  };
  judge_grouping(group_by(fabric, 2, key, describe), options, residuals, judgement);
}

}  // namespace gdrperf::cluster
