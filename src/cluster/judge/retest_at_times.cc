#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "cluster/judge/coarse.h"
#include "cluster/judge/membership.h"
#include "cluster/judge/retest.h"
#include "cluster/judge/robust.h"
#include "gdrperf/cluster/controls.h"

namespace gdrperf::cluster {
namespace {

// Chance beyond which bad measurements are as many as the others'.
constexpr double kLikely = 0.01;
constexpr double kAsOthers = 0.3;
// Chance below which they are more: what disturbs a healthy part comes in bursts, which single chances do not know.
constexpr double kHardly = 1e-4;
// Chance that the others do worse than is supposed, where that is known from few of them.
constexpr double kBeyond = 1e-3;
// Where more of all others are far below, what is ordinary of a NIC, and of the controls, is not known either.
constexpr double kMostOfOthers = 0.3;
// A NIC's retests are counted by measurement and by round.
const double kTwoCounts = std::log(2);

bool is_link(const Suspect& suspect) {
  return suspect.part == Part::kUplink || suspect.part == Part::kPodUplink || suspect.part == Part::kPath;
}

double share_of_tally(const Tally& tally) {
  return static_cast<double>(tally.bad) / static_cast<double>(std::max<std::size_t>(tally.all, 1));
}

// Measurements before the retests in which the suspect had no part.
Tally of_others(const Suspect& suspect, const Fabric& fabric, const Judgement& judgement) {
  Tally others = judgement.bad_in_all;
  if (suspect.part != Part::kNic && suspect.part != Part::kNode) return others;
  for (std::uint32_t id = 0; id < judgement.bad_by_nic.size(); ++id) {
    if (!belongs_to(suspect, fabric, id)) continue;
    others.bad -= std::min(others.bad, judgement.bad_by_nic[id].bad);
    others.all -= std::min(others.all, judgement.bad_by_nic[id].all);
  }
  return others;
}

// The highest share with which no more than these may be bad.
double highest_share(double bad, double all) {
  double low = bad / std::max(all, 1.0), high = 0.999;
  if (bad >= all) return high;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (log_tail(bad + 1, all, middle) < std::log1p(-kBeyond) ? low : high) = middle;
  }
  return high;
}

// NICs of the node.
double nics_of(const Suspect& node, const Fabric& fabric) {
  double count = 0;
  for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) count += belongs_to(node, fabric, id) ? 1 : 0;
  return std::max(count, 1.0);
}

// What slows a node slows all its measurements of a round: of all NICs, in both directions.
double highest_share_of_nodes(const Suspect& suspect, const Tally& others, const Fabric& fabric) {
  const double together = 2 * nics_of(suspect, fabric);
  return highest_share(std::ceil(static_cast<double>(others.bad) / together),
                       std::floor(static_cast<double>(others.all) / together));
}

// Share of healthy measurements far below, at most: of those before, and of those beside the retests.
double far_below_share(const Suspect& suspect, const Fabric& fabric, const Judgement& judgement) {
  const Tally others = of_others(suspect, fabric, judgement);
  const double never_seen = 1 / static_cast<double>(judgement.controls + 2);
  const double before = suspect.part == Part::kNode
                            ? highest_share_of_nodes(suspect, others, fabric)
                            : most_of(share_of_tally(others), static_cast<double>(others.all));
  return std::max({before, share_of_controls(judgement.bad_controls, judgement), never_seen});
}

// What the suspect reaches when it sends, or receives: the upper quartile of its retests, if that is no more than
// somewhat slow. A NIC may be slow by nature and still be as fast as it can be most of the time.
float own_level(const Suspect& suspect, bool sends, std::span<const Sample> retests, const Fabric& fabric,
                const Judgement& judgement) {
  constexpr double kSomewhat = -0.06;
  std::vector<float> shifts;
  for (const Sample& sample : retests) {
    if (belongs_to(suspect, fabric, sample.from) == sends && belongs_to(suspect, fabric, sample.to) != sends)
      shifts.push_back(shift_of(sample, suspect, fabric, judgement));
  }
  if (shifts.size() < kLeastRetests) return 0;
  const float level = quantile(shifts, kUpperQuartile);
  return level < kSomewhat ? 0 : std::min(level, 0.0F);
}

// Retests of a suspect: measurements, and rounds. What happens in one round happens to all measurements of a node in
// it; a round of a NIC is bad where one direction is.
struct Retested {
  Tally measurements;
  Tally one_way;
  Tally rounds;
};

Retested count_bad(const Suspect& suspect, std::span<const Sample> retests, const Fabric& fabric,
                   const Judgement& judgement) {
  Suspect whole = suspect;
  whole.way = Way::kBoth;
  const float sends = own_level(whole, true, retests, fabric, judgement);
  const float receives = own_level(whole, false, retests, fabric, judgement);
  std::map<std::uint32_t, Tally> rounds;
  Retested count;
  for (const Sample& sample : retests) {
    if (!concerns(whole, fabric, sample)) continue;
    const float level = belongs_to(whole, fabric, sample.from) ? sends : receives;
    const bool far = (is_link(suspect) ? unexpected(sample, fabric, judgement)
                                       : shift_of(sample, whole, fabric, judgement) - level) < judgement.far_below;
    count.measurements.add(far);
    if (concerns(suspect, fabric, sample)) count.one_way.add(far);
    rounds[sample.moment / 2].add(far);
  }
  // Of a node's measurements most have to be.
  for (const auto& [round, tally] : rounds) count.rounds.add(tally.bad > 0 && 2 * tally.bad >= tally.all);
  return count;
}

double chance_of_bad(const Tally& own, double share) {
  return own.all == 0 ? 0 : log_tail(static_cast<double>(own.bad), static_cast<double>(own.all), share);
}

// Of the logarithm; 0 and more: as many as others have.
double chance_of_retests(const Suspect& suspect, const Retested& count, double share) {
  if (is_link(suspect)) return chance_of_bad(count.measurements, share);
  if (suspect.part == Part::kNode) return chance_of_bad(count.rounds, share);
  const double by_round = chance_of_bad(count.rounds, either_of_two(share));
  // Both directions of a round share what slows a partner.
  const double one_way = suspect.way == Way::kBoth ? 0 : chance_of_bad(count.one_way, share);
  return std::min(0.0, std::min(by_round, one_way) + (suspect.way == Way::kBoth ? 0 : kTwoCounts));
}

}  // namespace

void decide_at_times(Suspect& suspect, std::span<const Sample> retests, const Fabric& fabric, Stage stage,
                     const Judgement& judgement) {
  const bool first = suspect.when == When::kAtTimes;  // else it seemed slow always
  const Retested count = count_bad(suspect, retests, fabric, judgement);
  if (first) suspect.retests = count.measurements.all;
  if (count.rounds.all < kLeastRetests) {
    if (stage == Stage::kLast) suspect.verdict = Verdict::kUndecided;
    return;
  }
  const double share = far_below_share(suspect, fabric, judgement);
  const double chance = chance_of_retests(suspect, count, share);
  const bool slow = share < kMostOfOthers && chance + log_parts(judgement) < std::log(kHardly);
  if (!first && !slow && stage == Stage::kMore) {
    if (chance <= std::log(kAsOthers)) suspect.verdict = Verdict::kSuspect;
    return;
  }
  if (!first && !slow && chance > std::log(kLikely)) return;
  suspect.when = When::kAtTimes;
  const Tally& own = suspect.way == Way::kBoth || is_link(suspect) ? count.measurements : count.one_way;
  suspect.retests = own.all;
  suspect.retest_bad_share = share_of_tally(own);
  if (slow) {
    suspect.verdict = Verdict::kSlow;
    suspect.others_share = share_of_tally(of_others(suspect, fabric, judgement));
  } else if (stage == Stage::kLast || chance > std::log(kAsOthers)) {
    const auto samples = static_cast<double>(suspect.samples);
    const bool sure = log_chance(suspect.bad_share * samples, samples, suspect.others_share) + log_parts(judgement) <
                      std::log(kUnlikely);
    suspect.verdict = first && chance > std::log(kLikely) && !sure ? Verdict::kCleared : Verdict::kUndecided;
  } else {
    suspect.verdict = Verdict::kSuspect;
  }
}

}  // namespace gdrperf::cluster
