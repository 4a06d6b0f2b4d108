#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cluster/judge/coarse.h"
#include "cluster/judge/membership.h"
#include "cluster/judge/robust.h"

namespace gdrperf::cluster {
namespace {

// Retests decide; so many false suspects in a run are fine.
constexpr double kSuspicion = 1;
// Fewer more than the others have is nothing to send somebody for.
constexpr double kLeastMore = 0.08;
// Of a node's NICs, so many make it the node.
constexpr double kMostOfNode = 0.75;

Tally sum(const Tally& one, const Tally& other) { return {one.bad + other.bad, one.all + other.all}; }

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
  std::vector<std::set<std::uint32_t>> slow_with(fabric.nics.size());
  Tally total;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Sample& sample = residuals.samples[i];
    bad[i] = unexplained(residuals, i, judgement) - judgement.pair_center < judgement.far_below;
    sends[sample.from].add(bad[i]);
    receives[sample.to].add(bad[i]);
    total.add(bad[i]);
    if (bad[i]) {
      slow_with[sample.from].insert(sample.to);
      slow_with[sample.to].insert(sample.from);
    }
    for (const std::uint32_t nic : {sample.from, sample.to}) {
      bool& either = rounds[nic][sample.moment / 2];
      either = either || bad[i];
    }
  }
  judgement.bad_in_all = total;
  judgement.bad_by_nic.resize(fabric.nics.size());
  for (std::size_t nic = 0; nic < fabric.nics.size(); ++nic) judgement.bad_by_nic[nic] = sum(sends[nic], receives[nic]);
  judge_uplinks(fabric, residuals, bad, judgement);
  std::vector<Suspect> nics;
  const auto least_rounds = static_cast<std::size_t>(options.least_partners);
  for (std::uint32_t nic = 0; nic < fabric.nics.size(); ++nic) {
    // With one partner alone it is the pair.
    if (slow_with[nic].size() < 2 || covered(judgement, fabric, nic)) continue;
    Tally both;
    for (const auto& [round, is_bad] : rounds[nic]) both.add(is_bad);
    const double of_sends = share_of_others(total, sends[nic]);
    const double of_receives = share_of_others(total, receives[nic]);
    const double of_both = share_of_others(total, judgement.bad_by_nic[nic]);
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
    consider(judgement.bad_by_nic[nic], of_both, Way::kBoth);
    consider(both, either_of_two(of_both), Way::kBoth);
    if (suspect.nic < 0) continue;
    suspect.part = Part::kNic;
    suspect.node = fabric.nics[nic].node;
    suspect.rail = fabric.nics[nic].rail;
    nics.push_back(suspect);
  }
  // Its slow pairs are a part of what such a NIC is suspected of.
  std::erase_if(judgement.suspects, [&](const Suspect& one) {
    return one.part == Part::kPair && std::any_of(nics.begin(), nics.end(), [&](const Suspect& other) {
             return other.nic == one.nic || other.nic == one.peer;
           });
  });
  const std::vector<Suspect> merged = merged_by_node(fabric, std::move(nics));
  judgement.suspects.insert(judgement.suspects.end(), merged.begin(), merged.end());
}

}  // namespace gdrperf::cluster
