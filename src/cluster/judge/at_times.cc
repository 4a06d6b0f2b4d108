#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cluster/judge/coarse.h"
#include "cluster/judge/membership.h"
#include "cluster/judge/robust.h"

namespace gdrperf::cluster {
namespace {

// Retests decide; so many false suspects in a run are fine.
constexpr double kSuspicion = 0.2;
// Fewer more than the others have is nothing to send somebody for.
constexpr double kLeastMore = 0.08;
// Of a node's NICs, so many make it the node.
constexpr double kMostOfNode = 0.75;

struct Tally {
  std::size_t bad = 0;
  std::size_t all = 0;
  void add(bool is_bad) {
    bad += std::size_t{is_bad};
    ++all;
  }
};

double share_of(const Tally& tally) {
  return static_cast<double>(tally.bad) / static_cast<double>(std::max<std::size_t>(tally.all, 1));
}

// The share of all but `own`, never 0: what nobody has seen may happen.
double share_of_others(const Tally& total, const Tally& own) {
  return static_cast<double>(total.bad - own.bad + 1) / static_cast<double>(total.all - own.all + 2);
}

double chance_of(const Tally& own, double others) {
  return own.all == 0 ? 0 : log_tail(static_cast<double>(own.bad), static_cast<double>(own.all), others);
}

bool covered(const Judgement& judgement, const Fabric& fabric, std::uint32_t nic) {
  return std::any_of(judgement.suspects.begin(), judgement.suspects.end(), [&](const Suspect& one) {
    return one.part != Part::kRail && one.part != Part::kPair && one.part != Part::kPath &&
           belongs_to(one, fabric, nic);
  });
}

Suspect described(const Tally& own, double others) {
  Suspect suspect;
  suspect.when = When::kAtTimes;
  suspect.samples = own.all;
  suspect.bad_share = share_of(own);
  suspect.others_share = others;
  return suspect;
}

// Most NICs of a node: the node.
std::vector<Suspect> merged_by_node(const Fabric& fabric, std::vector<Suspect> nics) {
  const NicIndex index(fabric);
  std::map<int, std::vector<std::size_t>> by_node;
  for (std::size_t i = 0; i < nics.size(); ++i) by_node[nics[i].node].push_back(i);
  std::vector<Suspect> merged;
  for (const auto& [node, members] : by_node) {
    const auto& all = index.of(node);
    const auto count =
        static_cast<double>(all.size() - static_cast<std::size_t>(std::count(all.begin(), all.end(), -1)));
    if (count < 2 || is_one_node(fabric) || static_cast<double>(members.size()) < kMostOfNode * count) {
      for (const std::size_t i : members) merged.push_back(nics[i]);
      continue;
    }
    Suspect whole = nics[members.front()];
    whole.part = Part::kNode;
    whole.nic = whole.rail = -1;
    whole.way = Way::kBoth;
    for (const std::size_t i : members) whole.bad_share = std::max(whole.bad_share, nics[i].bad_share);
    merged.push_back(whole);
  }
  return merged;
}

void judge_uplinks(const Fabric& fabric, const Residuals& residuals, const std::vector<bool>& bad,
                   Judgement& judgement) {
  std::map<std::pair<int, int>, Tally> groups;
  Tally total;
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    const Nic& from = fabric.nics[residuals.samples[i].from];
    const Nic& to = fabric.nics[residuals.samples[i].to];
    if (from.leaf < 0 || to.leaf < 0 || from.leaf == to.leaf) continue;
    total.add(bad[i]);
    groups[{from.leaf, from.rail}].add(bad[i]);
    groups[{to.leaf, to.rail}].add(bad[i]);
  }
  if (groups.size() < 4) return;
  for (const auto& [key, own] : groups) {
    const double others = share_of_others(total, own);
    if (share_of(own) < others + kLeastMore || chance_of(own, others) + log_parts(judgement) > std::log(kSuspicion))
      continue;
    Suspect suspect = described(own, others);
    suspect.part = Part::kUplink;
    suspect.leaf = key.first;
    suspect.rail = key.second;
    judgement.suspects.push_back(suspect);
  }
}

}  // namespace

double either_of_two(double share) { return 1 - (1 - share) * (1 - share); }

void judge_at_times(const Fabric& fabric, const JudgeOptions& options, const Residuals& residuals,
                    Judgement& judgement) {
  std::vector<bool> bad(residuals.samples.size());
  std::vector<Tally> sends(fabric.nics.size());
  std::vector<Tally> receives(fabric.nics.size());
  std::vector<std::map<std::uint32_t, bool>> rounds(fabric.nics.size());
  Tally total;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Sample& sample = residuals.samples[i];
    bad[i] = unexplained(residuals, i, judgement) - judgement.pair_center < judgement.far_below;
    sends[sample.from].add(bad[i]);
    receives[sample.to].add(bad[i]);
    total.add(bad[i]);
    for (const std::uint32_t nic : {sample.from, sample.to}) {
      bool& either = rounds[nic][sample.moment / 2];
      either = either || bad[i];
    }
  }
  judge_uplinks(fabric, residuals, bad, judgement);
  std::vector<Suspect> nics;
  const auto least_rounds = static_cast<std::size_t>(options.least_partners);
  for (std::uint32_t nic = 0; nic < fabric.nics.size(); ++nic) {
    if (covered(judgement, fabric, nic)) continue;
    Tally both;
    for (const auto& [round, is_bad] : rounds[nic]) both.add(is_bad);
    const double of_sends = share_of_others(total, sends[nic]);
    const double of_receives = share_of_others(total, receives[nic]);
    const double of_rounds =
        either_of_two(share_of_others(total, {sends[nic].bad + receives[nic].bad, sends[nic].all + receives[nic].all}));
    Suspect suspect;
    double least = std::log(kSuspicion) - log_parts(judgement);
    const auto consider = [&](const Tally& own, double others, Way way) {
      const double chance = chance_of(own, others);
      if (own.all < least_rounds || share_of(own) < others + kLeastMore || !(chance < least)) return;
      least = chance;
      suspect = described(own, others);
      suspect.way = way;
      suspect.nic = static_cast<int>(nic);
    };
    consider(sends[nic], of_sends, Way::kSends);
    consider(receives[nic], of_receives, Way::kReceives);
    consider(both, of_rounds, Way::kBoth);
    if (suspect.nic < 0) continue;
    suspect.part = Part::kNic;
    suspect.node = fabric.nics[nic].node;
    suspect.rail = fabric.nics[nic].rail;
    nics.push_back(suspect);
  }
  const std::vector<Suspect> merged = merged_by_node(fabric, std::move(nics));
  judgement.suspects.insert(judgement.suspects.end(), merged.begin(), merged.end());
}

}  // namespace gdrperf::cluster
