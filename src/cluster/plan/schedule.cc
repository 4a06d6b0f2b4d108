#include "gdrperf/cluster/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace gdrperf::cluster {
namespace {

using Random = std::mt19937_64;
using Match = std::pair<int, int>;

// std::shuffle may differ between standard libraries; a seed has to replay.
void shuffle(std::vector<int>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

// Round `r` of the circle method: the last stands still, the others turn. With
// an odd number whoever meets nobody is put into `alone`.
void circle_round(const std::vector<int>& members, std::size_t r, std::vector<Match>& matches,
                  std::vector<int>& alone) {
  const std::size_t seats = members.size() + members.size() % 2;
  if (seats == 0) return;
  const std::size_t turning = seats - 1;
  const auto member = [&](std::size_t seat) {
    return seat < members.size() ? members[seat] : -1;
  };
  const auto meet = [&](int a, int b) {
    if (a < 0 || b < 0) alone.push_back(std::max(a, b));
    else matches.emplace_back(std::min(a, b), std::max(a, b));
  };
  meet(member(turning), member(r % turning));
  for (std::size_t i = 1; i < seats / 2; ++i) {
    meet(member((r + i) % turning), member((r + turning - i) % turning));
  }
}

void pair_up(const std::vector<int>& nodes, std::vector<Match>& matches) {
  for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
    matches.emplace_back(std::min(nodes[i], nodes[i + 1]), std::max(nodes[i], nodes[i + 1]));
  }
}

class Matchings {
 public:
  Matchings(const NicIndex& index, Random& random) : random_(random) {
    for (int node = 0; node < index.nodes(); ++node) {
      all_.push_back(node);
      leaves_[index.leaf(node)].push_back(node);
    }
    for (auto& [leaf, nodes] : leaves_) shuffle(nodes, random_);
  }

  std::vector<Match> next() {
    const std::size_t turn = turn_++;
    if (leaves_.size() < 2) return anyhow();
    return turn % 2 == 0 ? within(turn / 2) : across();
  }

 private:
  std::vector<Match> anyhow() {
    std::vector<Match> matches;
    shuffle(all_, random_);
    pair_up(all_, matches);
    return matches;
  }

  // By the circle method in each leaf: nobody meets the same partner again
  // before all are through.
  std::vector<Match> within(std::size_t r) {
    std::vector<Match> matches;
    std::vector<int> alone;
    for (const auto& [leaf, nodes] : leaves_) circle_round(nodes, r, matches, alone);
    shuffle(alone, random_);
    pair_up(alone, matches);
    return matches;
  }

  // In the order of leaves, i meets i + n/2: in another leaf unless one holds
  // more than half of the nodes.
  std::vector<Match> across() {
    std::vector<int> order;
    for (const auto& [leaf, nodes] : leaves_) order.push_back(leaf);
    shuffle(order, random_);
    std::vector<int> row;
    for (const int leaf : order) {
      std::vector<int> nodes = leaves_.at(leaf);
      shuffle(nodes, random_);
      row.insert(row.end(), nodes.begin(), nodes.end());
    }
    const std::size_t half = row.size() / 2;
    std::vector<Match> matches;
    for (std::size_t i = 0; i < half; ++i) {
      matches.emplace_back(std::min(row[i], row[i + half]), std::max(row[i], row[i + half]));
    }
    return matches;
  }

  Random& random_;
  std::vector<int> all_;
  std::map<int, std::vector<int>> leaves_;
  std::size_t turn_ = 0;
};

void add_links(const NicIndex& index, const Match& match, Round& round) {
  const auto& a = index.of(match.first);
  const auto& b = index.of(match.second);
  for (std::size_t rail = 0; rail < std::min(a.size(), b.size()); ++rail) {
    if (a[rail] >= 0 && b[rail] >= 0) round.push_back({a[rail], b[rail]});
  }
}

// One node: its NICs are what meets.
std::vector<Round> within_one_node(const Fabric& fabric) {
  std::vector<int> nics(fabric.nics.size());
  std::iota(nics.begin(), nics.end(), 0);
  std::vector<Round> rounds;
  const std::size_t count = nics.size() < 2 ? 0 : nics.size() - 1 + nics.size() % 2;
  for (std::size_t r = 0; r < count; ++r) {
    std::vector<Match> matches;
    std::vector<int> alone;
    circle_round(nics, r, matches, alone);
    Round round;
    for (const auto& [a, b] : matches) round.push_back({a, b});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

std::vector<Round> make_schedule(const Fabric& fabric, const ScheduleOptions& options) {
  const NicIndex index(fabric);
  if (index.nodes() < 2) return within_one_node(fabric);
  Random random(options.seed);
  std::vector<Round> rounds;
  const auto add = [&](const std::vector<Match>& matches) {
    Round round;
    for (const Match& match : matches) add_links(index, match, round);
    rounds.push_back(std::move(round));
  };
  if (index.nodes() <= options.all_pairs_up_to) {
    std::vector<int> nodes(static_cast<std::size_t>(index.nodes()));
    std::iota(nodes.begin(), nodes.end(), 0);
    shuffle(nodes, random);
    for (std::size_t r = 0; r < nodes.size() - 1 + nodes.size() % 2; ++r) {
      std::vector<Match> matches;
      std::vector<int> alone;
      circle_round(nodes, r, matches, alone);
      add(matches);
    }
    return rounds;
  }
  Matchings matchings(index, random);
  for (int r = 0; r < options.matchings; ++r) add(matchings.next());
  return rounds;
}

Round without_nodes(const Round& round, const Fabric& fabric, const std::vector<bool>& gone) {
  const auto node_of = [&](int nic) { return fabric.nics[static_cast<std::size_t>(nic)].node; };
  const auto is_gone = [&](int nic) { return gone[static_cast<std::size_t>(node_of(nic))]; };
  Round mended;
  std::map<int, std::vector<int>> alone;  // by rail
  for (const Link& link : round) {
    if (!is_gone(link.a) && !is_gone(link.b)) mended.push_back(link);
    for (const auto& [one, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      if (is_gone(other) && !is_gone(one)) {
        alone[fabric.nics[static_cast<std::size_t>(one)].rail].push_back(one);
      }
    }
  }
  for (const auto& [rail, nics] : alone) {
    for (std::size_t i = 0; i + 1 < nics.size(); i += 2) mended.push_back({nics[i], nics[i + 1]});
  }
  return mended;
}

}  // namespace gdrperf::cluster
