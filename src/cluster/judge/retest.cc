#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "cluster/judge/coarse.h"
#include "gdrperf/cluster/judge.h"
#include "cluster/judge/robust.h"

namespace gdrperf::cluster {
namespace {

constexpr std::size_t kLeastRetests = 4;  // measurements
// Standard error of an upper quartile: this times sigma / sqrt(n), for a normal distribution.
constexpr double kQuartileError = 1.36;
constexpr double kQuartileOfNormal = 0.674;
// Beyond the limit by so many standard errors is decided. Of 8,000 NICs that scatter by 0.5 % one lies at -2 %
// by nature; a quartile of nine at the limit itself would call a tenth of such slow.
constexpr double kSureErrors = 3;
// Each stage retests twice as many links as the one before.
constexpr int kStages = 3;
// Suspects that may be so many times as slow as the limit, for all that the retests tell, are not cleared.
constexpr double kDoubtful = 2;
// Chance, of all NICs of a run together, below which collisions explain nothing.
constexpr double kUnlikely = 1e-3;

bool belongs_to(const Suspect& suspect, const Fabric& fabric, std::uint32_t id) {
  const Nic& nic = fabric.nics[id];
  switch (suspect.part) {
    case Part::kRail: return nic.rail == suspect.rail;
    case Part::kLeafRail:
    case Part::kUplink: return nic.rail == suspect.rail && nic.leaf == suspect.leaf;
    case Part::kNode: return nic.node == suspect.node;
    case Part::kNic: return static_cast<int>(id) == suspect.nic;
    case Part::kPair: return static_cast<int>(id) == suspect.nic || static_cast<int>(id) == suspect.peer;
  }
  return false;
}

// Under no suspicion; that of its whole rail is no reason, since others there
// share it.
std::vector<bool> good_nics(const Fabric& fabric, const Judgement& judgement) {
  std::vector<bool> good(fabric.nics.size());
  for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) {
    good[id] = judgement.sends[id].samples + judgement.receives[id].samples > 0;
  }
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.part == Part::kRail || suspect.part == Part::kPair) continue;
    for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) {
      if (belongs_to(suspect, fabric, id)) good[id] = false;
    }
  }
  return good;
}

class Chooser {
 public:
  Chooser(const Fabric& fabric, const Judgement& judgement, std::span<const Sample> samples,
          std::span<const Sample> retests, const JudgeOptions& options)
      : fabric_(fabric), samples_(samples), retests_(retests), options_(options),
        good_(good_nics(fabric, judgement)), random_(options.seed + retests.size()) {}

  void choose(const Suspect& suspect, std::vector<Link>& links) {
    if (suspect.part == Part::kPair) {
      for (int i = 0; i < options_.retests; ++i) links.push_back({suspect.nic, suspect.peer});
      return;
    }
    std::vector<int> members;
    for (std::uint32_t id = 0; id < fabric_.nics.size(); ++id) {
      if (belongs_to(suspect, fabric_, id)) members.push_back(static_cast<int>(id));
    }
    shuffle(members);
    std::set<int> taken;
    for (int i = 0; i < options_.retests; ++i) {
      const int member = members[static_cast<std::size_t>(i) % members.size()];
      const int partner = partner_of(suspect, member, taken);
      if (partner >= 0) links.push_back({member, partner});
    }
  }

 private:
  // Good, outside of what is suspected; first one that has not met this member, then one
  // that has, then one taken already.
  int partner_of(const Suspect& suspect, int member, std::set<int>& taken) {
    const Nic& own = fabric_.nics[static_cast<std::size_t>(member)];
    std::vector<int> candidates;
    for (std::uint32_t id = 0; id < fabric_.nics.size(); ++id) {
      const Nic& nic = fabric_.nics[id];
      const bool outside =
          suspect.part == Part::kRail ? nic.node != own.node : !belongs_to(suspect, fabric_, id);
      const bool meets = nic.node == own.node ? one_node() : nic.rail == own.rail;
      if (good_[id] && outside && meets && static_cast<int>(id) != member) {
        candidates.push_back(static_cast<int>(id));
      }
    }
    if (candidates.empty()) return -1;
    shuffle(candidates);
    const std::set<int> met = met_by(member);
    const auto rank = [&](int id) { return 2 * int{taken.contains(id)} + int{met.contains(id)}; };
    const int best = *std::min_element(candidates.begin(), candidates.end(),
                                       [&](int a, int b) { return rank(a) < rank(b); });
    if (!taken.insert(best).second) taken = {best};
    return best;
  }

  std::set<int> met_by(int member) const {
    std::set<int> met;
    const auto id = static_cast<std::uint32_t>(member);
    for (const auto& some : {samples_, retests_}) {
      for (const Sample& sample : some) {
        if (sample.from == id) met.insert(static_cast<int>(sample.to));
        if (sample.to == id) met.insert(static_cast<int>(sample.from));
      }
    }
    return met;
  }

  bool one_node() const {
    return std::all_of(fabric_.nics.begin(), fabric_.nics.end(),
                       [&](const Nic& nic) { return nic.node == fabric_.nics[0].node; });
  }

  void shuffle(std::vector<int>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random_() % i]);
  }

  const Fabric& fabric_;
  std::span<const Sample> samples_;
  std::span<const Sample> retests_;
  const JudgeOptions& options_;
  std::vector<bool> good_;
  std::mt19937_64 random_;
};

// Effects of coarser suspects, taken out of such a measurement before the finer one was judged.
double explained_by_coarser(const Sample& sample, Part part, const Fabric& fabric,
                            const Judgement& judgement) {
  double explained = 0;
  for (const Part level : {Part::kLeafRail, Part::kUplink, Part::kNode}) {
    if (level >= part) break;
    double of_level = 0;
    for (const Suspect& suspect : judgement.suspects) {
      if (suspect.part != level) continue;
      const bool from = belongs_to(suspect, fabric, sample.from);
      const bool to = belongs_to(suspect, fabric, sample.to);
      // Flows within a leaf take no uplink.
      if (level == Part::kUplink ? from != to : from || to) of_level = std::min(of_level, suspect.shift);
    }
    explained += of_level;
  }
  return explained;
}

// Effect of the suspect on a retest's rate, against what the partner and the
// rail let expect.
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
  if (suspect.part == Part::kPair) {
    return static_cast<float>(left - sends - receives - judgement.pair_center);
  }
  return belongs_to(suspect, fabric, sample.from)
             ? static_cast<float>(left - receives - judgement.sends_center)
             : static_cast<float>(left - sends - judgement.receives_center);
}

bool concerns(const Suspect& suspect, const Fabric& fabric, const Sample& sample) {
  const bool from = belongs_to(suspect, fabric, sample.from);
  const bool to = belongs_to(suspect, fabric, sample.to);
  if (suspect.part == Part::kPair || suspect.part == Part::kRail) return from && to;
  if (suspect.part != Part::kNic || suspect.way == Way::kBoth) return from != to;
  return suspect.way == Way::kSends ? from : to;
}

double quartile_error(double sigma, std::size_t count) {
  return kSureErrors * kQuartileError * sigma / std::sqrt(static_cast<double>(count));
}

// Whether collisions alone can have lowered the upper quartile of `count` measurements of some NIC.
bool may_be_collisions(std::size_t count, const Judgement& judgement) {
  const double n = static_cast<double>(count);
  const double slow = std::floor(kUpperQuartile * (n - 1)) + 1;
  const double log_share = std::log(std::max(judgement.slow_share, 1e-9));
  const double log_ways = std::lgamma(n + 1) - std::lgamma(slow + 1) - std::lgamma(n - slow + 1);
  const double log_nics = std::log(2.0 * static_cast<double>(std::max<std::size_t>(judgement.sends.size(), 1)));
  return log_ways + slow * log_share + log_nics > std::log(kUnlikely);
}

// Its first measurements alone leave no doubt that it was slow then. Both ways were counted.
bool was_surely_slow(const Suspect& suspect, double doubtful, const Judgement& judgement) {
  const std::size_t count = suspect.samples / 2;
  return suspect.part != Part::kPair && count > 0 && !may_be_collisions(count, judgement) &&
         suspect.shift + quartile_error(judgement.pair_sigma, count) < doubtful;
}

void decide_one(Suspect& suspect, std::vector<float>& shifts, const JudgeOptions& options, Stage stage, const Judgement& judgement) {
  const double limit = std::log(1 - options.suspect_share);
  const double doubtful = std::log(1 - kDoubtful * options.suspect_share);
  // A pair that reached its rate once is whole.
  const bool pair = suspect.part == Part::kPair;
  suspect.retest_shift = quantile(shifts, pair ? 1.0 : kUpperQuartile);
  // Of a machine that became busy, the retests scatter more than what was judged.
  const double sigma = pair ? 0 : std::max(judgement.pair_sigma, robust_center(shifts).sigma);
  const double error = quartile_error(sigma, shifts.size());
  // More scatter alone lifts the quartile.
  const double lifted = pair ? 0 : kQuartileOfNormal * (sigma - judgement.pair_sigma);
  if (suspect.retest_shift < limit - error) {
    suspect.verdict = Verdict::kSlow;
  } else if (suspect.retest_shift - lifted > limit + error) {
    suspect.verdict = was_surely_slow(suspect, doubtful, judgement) ? Verdict::kUndecided : Verdict::kCleared;
  } else if (stage == Stage::kLast) {
    suspect.verdict = suspect.retest_shift - lifted - error > doubtful ? Verdict::kCleared : Verdict::kUndecided;
  }
}

}  // namespace

std::vector<Link> retest_links(const Fabric& fabric, const Judgement& judgement,
                               std::span<const Sample> samples, std::span<const Sample> retests,
                               const JudgeOptions& options) {
  std::vector<Link> links;
  Chooser chooser(fabric, judgement, samples, retests, options);
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.verdict == Verdict::kSuspect) chooser.choose(suspect, links);
  }
  return links;
}

void decide(const Fabric& fabric, std::span<const Sample> retests, const JudgeOptions& options, Stage stage,
            Judgement& judgement) {
  for (Suspect& suspect : judgement.suspects) {
    if (suspect.verdict != Verdict::kSuspect) continue;
    std::vector<float> shifts;
    for (const Sample& sample : retests) {
      if (concerns(suspect, fabric, sample)) shifts.push_back(shift_of(sample, suspect, fabric, judgement));
    }
    suspect.retests = shifts.size();
    if (shifts.size() < kLeastRetests) {
      if (stage == Stage::kLast) suspect.verdict = Verdict::kUndecided;
      continue;
    }
    decide_one(suspect, shifts, options, stage, judgement);
  }
}

void settle(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options,
            const MeasureLinks& measure, std::vector<Sample>& retests, Judgement& judgement) {
  JudgeOptions stage_options = options;
  for (int stage = 1; stage <= kStages; ++stage, stage_options.retests *= 2) {
    const auto links = retest_links(fabric, judgement, samples, retests, stage_options);
    if (!links.empty()) measure(links, retests);
    decide(fabric, retests, options, stage == kStages || links.empty() ? Stage::kLast : Stage::kMore, judgement);
  }
}

}  // namespace gdrperf::cluster
