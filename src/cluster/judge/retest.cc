#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "cluster/judge/coarse.h"
#include "cluster/judge/membership.h"
#include "cluster/judge/retest.h"
#include "cluster/judge/robust.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/stats/shift.h"

namespace gdrperf::cluster {
namespace {

constexpr double kQuartileOfNormal = 0.674;
// Beyond the limit by so many standard errors is decided. Of 8,000 NICs that scatter by 0.5 % one lies at -2 %
// by nature; a quartile of nine at the limit itself would call a tenth of such slow.
constexpr double kSureErrors = 3;
// Suspects that may be so many times as slow as the limit, for all that the retests tell, are not cleared.
constexpr double kDoubtful = 2;

// Effects of coarser suspects, taken out of such a measurement before the finer one was judged.
double explained_by_coarser(const Sample& sample, Part part, const Fabric& fabric,
                            const Judgement& judgement) {
  double explained = 0;
  for (const Part level : {Part::kLeafRail, Part::kPodUplink, Part::kUplink, Part::kPath, Part::kNode}) {
    if (level >= part) break;
    double of_level = 0;
    for (const Suspect& suspect : judgement.suspects) {
      if (suspect.part != level) continue;
      const bool from = belongs_to(suspect, fabric, sample.from);
      const bool to = belongs_to(suspect, fabric, sample.to);
      // Flows within a leaf or a pod take no uplink of it.
      const bool uplink = level == Part::kUplink || level == Part::kPodUplink;
      const bool hit = level == Part::kPath ? takes_path(suspect, fabric, sample) : uplink ? from != to : from || to;
      if (hit) of_level = std::min(of_level, suspect.shift);
    }
    explained += of_level;
  }
  return explained;
}

double quartile_error(double sigma, std::size_t count) {
  return kSureErrors * kErrorOfQuartile * sigma / std::sqrt(static_cast<double>(count));
}

double measured(const Judgement& judgement) {
  double count = 0;
  for (const NicEffect& effect : judgement.sends) count += effect.samples;
  return count;
}

// Share of healthy measurements that are as slow as a slow part's, at most: those before, and those beside the
// retests. In a small cluster some that collided pass for their NIC's effect.
double collided_share(const Judgement& judgement) {
  return std::max(most_of(judgement.below_share, measured(judgement)),
                  share_of_controls(judgement.slow_controls, judgement));
}

// Whether collisions alone can have lowered the upper quartile of `count` measurements of some NIC.
bool may_be_collisions(std::size_t count, const Judgement& judgement) {
  const double n = static_cast<double>(count);
  const double slow = std::floor(kUpperQuartile * (n - 1)) + 1;
  const double log_share = std::log(collided_share(judgement));
  const double log_ways = std::lgamma(n + 1) - std::lgamma(slow + 1) - std::lgamma(n - slow + 1);
  return log_ways + slow * log_share + log_parts(judgement) > std::log(kUnlikely);
}

// Its first measurements alone leave no doubt that it was slow then. Both ways were counted.
bool was_surely_slow(const Suspect& suspect, double doubtful, const Judgement& judgement) {
  const std::size_t count = suspect.samples / 2;
  return suspect.part != Part::kPair && count > 0 && !may_be_collisions(count, judgement) &&
         suspect.shift + quartile_error(judgement.pair_sigma, count) < doubtful;
}

// Share of the measurements of a NIC with others than the pair's, at most, that are far below. Those of the pair, one
// of each direction, made it a suspect.
double share_beside_pair(int nic, const Judgement& judgement) {
  if (static_cast<std::size_t>(nic) >= judgement.bad_by_nic.size()) return 0;
  const Tally& own = judgement.bad_by_nic[static_cast<std::size_t>(nic)];
  const auto all = static_cast<double>(own.all - std::min<std::size_t>(own.all, 2));
  const auto bad = static_cast<double>(own.bad - std::min<std::size_t>(own.bad, 2));
  return all > 0 ? most_of(bad / all, all) : 0;
}

// Whether a pair that never reached its rate in so many rounds may have collided in each, or one of its NICs is slow at
// times.
bool may_be_chance_of_pair(const Suspect& pair, std::size_t rounds, const Judgement& judgement) {
  const double share = std::max({collided_share(judgement), share_beside_pair(pair.nic, judgement),
                                 share_beside_pair(pair.peer, judgement)});
  return static_cast<double>(rounds) * std::log(share) + log_parts(judgement) > std::log(kUnlikely);
}

// `rounds`: what happens in one round happens to all of its measurements.
void decide_always(Suspect& suspect, std::vector<float>& shifts, std::size_t rounds, const JudgeOptions& options,
                   Stage stage, const Judgement& judgement) {
  const double limit = std::log(1 - options.suspect_share);
  const double doubtful = std::log(1 - kDoubtful * options.suspect_share);
  // A pair that reached its rate once is whole.
  const bool pair = suspect.part == Part::kPair;
  suspect.retest_shift = quantile(shifts, pair ? 1.0 : kUpperQuartile);
  // Of a machine that became busy, the retests scatter more than what was judged.
  const double sigma = pair ? 0 : std::max(judgement.pair_sigma, robust_center(shifts).sigma);
  const double error = stats::judging_scatter(quartile_error(sigma, rounds), pair ? 0 : judgement.step);
  const bool lucky = pair ? may_be_chance_of_pair(suspect, rounds, judgement) : may_be_collisions(rounds, judgement);
  // More scatter alone lifts the quartile.
  const double lifted = pair ? 0 : kQuartileOfNormal * (sigma - judgement.pair_sigma);
  if (suspect.retest_shift < limit - error) {
    if (!lucky) suspect.verdict = Verdict::kSlow;
    if (lucky && stage == Stage::kLast) suspect.verdict = Verdict::kUndecided;
  } else if (suspect.retest_shift - lifted > limit + error) {
    suspect.verdict = was_surely_slow(suspect, doubtful, judgement) ? Verdict::kUndecided : Verdict::kCleared;
  } else if (stage == Stage::kLast) {
    suspect.verdict = suspect.retest_shift - lifted - error > doubtful ? Verdict::kCleared : Verdict::kUndecided;
  }
}

// Retests of single pairs say nothing of their NICs.
std::vector<Sample> not_of_pairs(std::span<const Sample> retests, const Judgement& judgement) {
  std::set<std::pair<int, int>> pairs;
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.part == Part::kPair) pairs.insert(std::minmax(suspect.nic, suspect.peer));
  }
  std::vector<Sample> others;
  std::copy_if(retests.begin(), retests.end(), std::back_inserter(others), [&](const Sample& sample) {
    return !pairs.contains(std::minmax(static_cast<int>(sample.from), static_cast<int>(sample.to)));
  });
  return others;
}

}  // namespace

float shift_of(const Sample& sample, const Suspect& suspect, const Fabric& fabric,
               const Judgement& judgement) {
  const auto rail = static_cast<std::size_t>(fabric.nics[sample.from].rail);
  const double base =
      judgement.rail_base[std::min(rail, judgement.rail_base.size() - 1)];
  const double left = std::log(sample.gbytes) - base -
                      explained_by_coarser(sample, suspect.part, fabric, judgement);
  const double sends = judgement.sends[sample.from].shift;
  const double receives = judgement.receives[sample.to].shift;
  if (suspect.part == Part::kRail) return static_cast<float>(left + suspect.shift);
  if (suspect.part == Part::kPair || suspect.part == Part::kPath) {
    return static_cast<float>(left - sends - receives - judgement.pair_center);
  }
  return belongs_to(suspect, fabric, sample.from)
             ? static_cast<float>(left - receives - judgement.sends_center)
             : static_cast<float>(left - sends - judgement.receives_center);
}

bool concerns(const Suspect& suspect, const Fabric& fabric, const Sample& sample) {
  const bool from = belongs_to(suspect, fabric, sample.from);
  const bool to = belongs_to(suspect, fabric, sample.to);
  if (suspect.part == Part::kPath) return takes_path(suspect, fabric, sample);
  if (suspect.part == Part::kPair || suspect.part == Part::kRail) return from && to;
  if (suspect.part != Part::kNic || suspect.way == Way::kBoth) return from != to;
  return suspect.way == Way::kSends ? from : to;
}

double most_of(double share, double count) {
  constexpr double kErrors = 2;
  return std::clamp(share + kErrors * std::sqrt(share * (1 - share) / std::max(count, 1.0)), 1e-9, 0.999);
}

double share_of_controls(std::size_t some, const Judgement& judgement) {
  const auto controls = static_cast<double>(judgement.controls);
  return controls > 0 ? most_of(static_cast<double>(some) / controls, controls) : 0;
}

void decide(const Fabric& fabric, std::span<const Sample> retests, const JudgeOptions& options, Stage stage,
            Judgement& judgement) {
  const std::vector<Sample> of_parts = not_of_pairs(retests, judgement);
  const std::span<const Sample> all = retests;
  for (Suspect& suspect : judgement.suspects) {
    if (suspect.verdict != Verdict::kSuspect) continue;
    retests = suspect.part == Part::kPair ? all : of_parts;
    const bool nics = suspect.part == Part::kNic || suspect.part == Part::kNode;
    if (suspect.when == When::kAtTimes && !nics) {
      decide_at_times(suspect, retests, fabric, stage, judgement);
      continue;
    }
    std::vector<float> shifts;
    std::set<std::uint32_t> rounds;
    for (const Sample& sample : retests) {
      if (!concerns(suspect, fabric, sample)) continue;
      shifts.push_back(shift_of(sample, suspect, fabric, judgement));
      rounds.insert(sample.moment / 2);
    }
    suspect.retests = shifts.size();
    if (rounds.size() < kLeastRetests) {
      if (stage == Stage::kLast) suspect.verdict = Verdict::kUndecided;
      continue;
    }
    decide_always(suspect, shifts, rounds.size(), options, stage, judgement);
    if (nics && suspect.verdict != Verdict::kSlow) decide_at_times(suspect, retests, fabric, stage, judgement);
    // On a busy machine the bad ones may be beyond doubt before their quartile is.
    const bool quartile = suspect.retest_shift < std::log(1 - options.suspect_share);
    if (suspect.verdict == Verdict::kSlow && quartile) suspect.when = When::kAlways;
  }
}

}  // namespace gdrperf::cluster
