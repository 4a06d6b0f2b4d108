#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "cluster/judge/coarse.h"
#include "cluster/judge/membership.h"
#include "cluster/judge/robust.h"
#include "gdrperf/cluster/controls.h"
#include "gdrperf/cluster/judge.h"

namespace gdrperf::cluster {
namespace {

// Each stage retests in twice as many rounds as the one before.
constexpr int kStages = 3;
// In small clusters few suspects are retested at once, and many of them are no single part's fault.
constexpr std::size_t kSmallCluster = 16;
// NICs of a group that are retested in one round, at most.
constexpr int kMostMembers = 8;

// Partners for suspects, round after round.
class Chooser {
 public:
  Chooser(const Fabric& fabric, const Judgement& judgement, std::span<const Sample> samples,
          std::span<const Sample> retests, const JudgeOptions& options, const std::vector<bool>& gone)
      : fabric_(fabric),
        samples_(samples),
        retests_(retests),
        one_node_(is_one_node(fabric)),
        good_(good_nics(fabric, judgement)),
        gone_(gone),
        random_(options.seed + retests.size()) {
    std::set<int> nodes;
    for (std::uint32_t id = 0; id < fabric.nics.size(); ++id) {
      const auto nic = static_cast<int>(id);
      if (is_gone(nic, fabric, gone)) {
        good_[id] = false;
        continue;
      }
      const int node = node_of(nic);
      nodes.insert(node);
      if (good_[id]) good_nodes_.insert(node);
    }
    for (const Suspect& suspect : judgement.suspects) {
      if (suspect.part == Part::kPair) pairs_.insert(std::minmax(suspect.nic, suspect.peer));
    }
    most_nodes_ = nodes.size() < kSmallCluster ? nodes.size() : nodes.size() / 2;
  }

  // Links of one suspect that are measured at once.
  Round choose(const Suspect& suspect, std::set<int>& taken) {
    if (suspect.part == Part::kPair) {
      const bool there = !is_gone(suspect.nic, fabric_, gone_) && !is_gone(suspect.peer, fabric_, gone_);
      if (!there || !leaves_controls({node_of(suspect.nic), node_of(suspect.peer)})) return {};
      return {{suspect.nic, suspect.peer}};
    }
    std::vector<int> members;
    for (std::uint32_t id = 0; id < fabric_.nics.size(); ++id) {
      const auto nic = static_cast<int>(id);
      if (belongs_to(suspect, fabric_, id) && !is_gone(nic, fabric_, gone_)) members.push_back(nic);
    }
    shuffle(members);
    Round links;
    std::set<int> nodes;
    for (const int member : members) {
      const int partner = partner_of(suspect, member, taken, links);
      if (partner < 0) continue;
      std::set<int> with = nodes;
      with.insert({node_of(member), node_of(partner)});
      if (!leaves_controls(with)) continue;
      nodes = std::move(with);
      links.push_back({member, partner});
      if (!taken.insert(partner).second) taken = {partner};
      if (links.size() == kMostMembers) break;
    }
    return links;
  }

  // Whether `links` can be measured beside those of `round`, and leave nodes for controls.
  bool fits(const Round& round, const Round& links) const {
    std::set<int> nics;
    std::set<int> nodes;
    for (const Round& some : {round, links}) {
      for (const Link& link : some) {
        if (!nics.insert(link.a).second || !nics.insert(link.b).second) return false;
        nodes.insert({node_of(link.a), node_of(link.b)});
      }
    }
    return leaves_controls(nodes);
  }

 private:
  int node_of(int nic) const { return one_node_ ? nic : fabric_.nics[static_cast<std::size_t>(nic)].node; }

  // Whether two nodes are left to be controls while `nodes` are busy: without any, a retest is not made.
  bool leaves_controls(const std::set<int>& nodes) const {
    const auto good = std::count_if(nodes.begin(), nodes.end(), [&](int node) { return good_nodes_.contains(node); });
    return good_nodes_.size() >= static_cast<std::size_t>(good) + 2 && nodes.size() <= most_nodes_;
  }

  // Good, outside of what is suspected; of a node's NICs all with the same node. First one that has not met this
  // member, then one that has, then one taken already.
  int partner_of(const Suspect& suspect, int member, const std::set<int>& taken, const Round& links) {
    const Nic& own = fabric_.nics[static_cast<std::size_t>(member)];
    std::vector<int> candidates;
    for (std::uint32_t id = 0; id < fabric_.nics.size(); ++id) {
      const Nic& nic = fabric_.nics[id];
      const bool outside = suspect.part == Part::kRail   ? nic.node != own.node
                           : suspect.part == Part::kPath ? group_of(nic) == suspect.other
                                                         : !belongs_to(suspect, fabric_, id);
      const bool meets = nic.node == own.node ? one_node_ : nic.rail == own.rail;
      const bool free = std::none_of(links.begin(), links.end(), [&](const Link& link) {
        return link.a == static_cast<int>(id) || link.b == static_cast<int>(id);
      });
      if (good_[id] && outside && meets && free && static_cast<int>(id) != member)
        candidates.push_back(static_cast<int>(id));
    }
    if (candidates.empty()) return -1;
    shuffle(candidates);
    const std::set<int>& met = met_by(member);
    const bool together = suspect.part == Part::kNode && !links.empty();
    const auto rank = [&](int id) {
      return 8 * int{pairs_.contains(std::minmax(member, id))} +
             4 * int{together && node_of(id) != node_of(links.front().b)} + 2 * int{taken.contains(id)} +
             int{met.contains(id)};
    };
    return *std::min_element(candidates.begin(), candidates.end(), [&](int a, int b) { return rank(a) < rank(b); });
  }

  const std::set<int>& met_by(int member) {
    const auto [at, fresh] = met_.try_emplace(member);
    if (!fresh) return at->second;
    const auto id = static_cast<std::uint32_t>(member);
    for (const auto& some : {samples_, retests_}) {
      for (const Sample& sample : some) {
        if (sample.from == id) at->second.insert(static_cast<int>(sample.to));
        if (sample.to == id) at->second.insert(static_cast<int>(sample.from));
      }
    }
    return at->second;
  }

  void shuffle(std::vector<int>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random_() % i]);
  }

  const Fabric& fabric_;
  std::span<const Sample> samples_;
  std::span<const Sample> retests_;
  bool one_node_;
  std::vector<bool> good_;
  std::vector<bool> gone_;
  std::mt19937_64 random_;
  std::set<int> good_nodes_;    // have a NIC under no suspicion
  std::size_t most_nodes_ = 0;  // busy in one round
  std::map<int, std::set<int>> met_;
  std::set<std::pair<int, int>> pairs_;  // what they do says nothing of their NICs
};

// One direction of a round of retests beside controls, which tell what to divide the retests by.
class Bench {
 public:
  Bench(const Fabric& fabric, const Measurer& measurer, const JudgeOptions& options, Judgement& judgement)
      : fabric_(fabric),
        measurer_(measurer),
        slow_share_(options.suspect_share),
        random_(options.seed),
        judgement_(judgement) {}

  void retest(const Round& round, std::uint32_t number, std::vector<Sample>& retests) {
    std::vector<bool> gone = measurer_.gone();
    Round mended = round;
    std::erase_if(mended, [&](const Link& link) {
      return is_gone(link.a, fabric_, gone) || is_gone(link.b, fabric_, gone);
    });
    if (mended.empty()) return;
    const Round controls = controls_of(mended, fabric_, judgement_, gone, random_);
    // Nobody could say what the retests should have reached.
    if (controls.empty()) return;
    one_way(mended, controls, 2 * number, retests);
    if (!measurer_.both_ways) return;
    one_way(turned(mended), turned(controls), 2 * number + 1, retests);
  }

 private:
  static Round turned(const Round& round) {
    Round back;
    for (const Link& link : round) back.push_back({link.b, link.a});
    return back;
  }

  void one_way(const Round& round, const Round& controls, std::uint32_t moment, std::vector<Sample>& retests) {
    Round both = round;
    both.insert(both.end(), controls.begin(), controls.end());
    std::vector<Sample> measured;
    measurer_.one_way(both, measured);
    const auto is_control = [&](const Sample& sample) {
      const Link link{static_cast<int>(sample.from), static_cast<int>(sample.to)};
      return std::find(controls.begin(), controls.end(), link) != controls.end();
    };
    const auto first = std::stable_partition(measured.begin(), measured.end(),
                                             [&](const Sample& sample) { return !is_control(sample); });
    const auto shift = common_shift(std::span(first, measured.end()), fabric_, judgement_);
    // Nobody can say what such a retest should have reached.
    if (!shift) return;
    const auto divided = static_cast<float>(std::exp(*shift));
    for (auto& sample : measured) sample.gbytes /= divided;
    std::vector<float> left;
    for (auto at = first; at != measured.end(); ++at) left.push_back(unexpected(*at, fabric_, judgement_));
    judgement_.controls += left.size();
    if (left.size() == 1) {
      count_alone(static_cast<float>(*shift) + left.front());
    } else {
      judgement_.bad_controls += count_below(left, 0, judgement_.far_below);
      judgement_.slow_controls += count_below(left, 0, std::log(1 - slow_share_));
    }
    for (auto at = measured.begin(); at != first; ++at) retests.push_back({at->from, at->to, at->gbytes, moment});
  }

  static std::size_t count_below(const std::vector<float>& left, double usual, double limit) {
    return static_cast<std::size_t>(
        std::count_if(left.begin(), left.end(), [&](float one) { return one - usual < limit; }));
  }

  // The only control of a round is all that tells what the round shares, so it is never below that. Whether it met
  // another flow is seen against what such controls mostly reach.
  void count_alone(float left) {
    alone_.push_back(left);
    const double usual = robust_center(alone_).median;
    judgement_.bad_controls -= std::exchange(bad_alone_, count_below(alone_, usual, judgement_.far_below));
    judgement_.bad_controls += bad_alone_;
    judgement_.slow_controls -= std::exchange(slow_alone_, count_below(alone_, usual, std::log(1 - slow_share_)));
    judgement_.slow_controls += slow_alone_;
  }

  const Fabric& fabric_;
  const Measurer& measurer_;
  double slow_share_;
  std::mt19937_64 random_;
  Judgement& judgement_;
  std::vector<float> alone_;  // logarithms, against what the rail and both NICs let expect
  std::size_t bad_alone_ = 0;
  std::size_t slow_alone_ = 0;
};

// Of a stage. Who is left without retests enough is undecided in the end.
std::size_t most_rounds(const Fabric& fabric, int stage, const JudgeOptions& options) {
  const bool small = NicIndex(fabric).nodes() < static_cast<int>(kSmallCluster);
  const auto one_part = static_cast<std::size_t>(options.retests);
  constexpr std::size_t kSmallStage[] = {12, 15, 18};
  if (small) return kSmallStage[stage - 1];
  return (stage == 1 ? 8 : 2) * one_part;
}

}  // namespace

std::vector<Round> retest_rounds(const Fabric& fabric, const Judgement& judgement, std::span<const Sample> samples,
                                 std::span<const Sample> retests, const JudgeOptions& options,
                                 const std::vector<bool>& gone) {
  Chooser chooser(fabric, judgement, samples, retests, options, gone);
  std::vector<Round> rounds;
  for (const Suspect& suspect : judgement.suspects) {
    if (suspect.verdict != Verdict::kSuspect) continue;
    std::set<int> taken;
    std::size_t at = 0;
    for (int i = 0; i < options.retests; ++i, ++at) {
      const Round links = chooser.choose(suspect, taken);
      if (links.empty()) break;
      while (at < rounds.size() && !chooser.fits(rounds[at], links)) ++at;
      if (at == rounds.size()) rounds.emplace_back();
      rounds[at].insert(rounds[at].end(), links.begin(), links.end());
    }
  }
  return rounds;
}

void settle(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options,
            const Measurer& measurer, std::vector<Sample>& retests, Judgement& judgement) {
  const auto leave_undecided = [&] {
    for (Suspect& suspect : judgement.suspects) {
      if (suspect.verdict == Verdict::kSuspect) suspect.verdict = Verdict::kUndecided;
    }
  };
  if (is_blind(judgement, options)) return leave_undecided();
  Bench bench(fabric, measurer, options, judgement);
  JudgeOptions stage_options = options;
  std::size_t number = 0;
  for (int stage = 1; stage <= kStages; ++stage, stage_options.retests *= 2) {
    std::vector<Round> rounds = retest_rounds(fabric, judgement, samples, retests, stage_options, measurer.gone());
    rounds.resize(std::min(rounds.size(), most_rounds(fabric, stage, stage_options)));
    for (const Round& round : rounds) {
      if (measurer.stopped()) return leave_undecided();
      bench.retest(round, static_cast<std::uint32_t>(number++), retests);
    }
    decide(fabric, retests, options, stage == kStages || rounds.empty() ? Stage::kLast : Stage::kMore, judgement);
  }
}

}  // namespace gdrperf::cluster
