// Star's tree: each rank's parent, and new parents for ranks whose parent is lost.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "cluster/wire/star.h"

namespace gdrperf::app {

using std::chrono::steady_clock;

int Star::top_of(int rank) const {
  while (rank > 0 && at(rank).parent > 0) rank = at(rank).parent;
  return rank;
}

std::vector<int> Star::below(int rank) const {
  std::vector<int> ranks = children_[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& more = children_[static_cast<std::size_t>(ranks[i])];
    ranks.insert(ranks.end(), more.begin(), more.end());
  }
  return ranks;
}

// Ranks that can have children come first, so that the others are leaves.
void Star::build_rank_tree() {
  std::vector<int> order = {0};
  for (const bool relays : {true, false}) {
    for (int rank = 1; rank < settings_.ranks; ++rank) {
      if (there(rank) && (at(rank).card.relay_port > 0) == relays) order.push_back(rank);
    }
  }
  const auto relays = static_cast<std::size_t>(
      std::count_if(order.begin(), order.end(), [&](int rank) { return at(rank).card.relay_port > 0; }));
  const std::vector<int> parents = tree_parents(order.size(), settings_.fanout);
  children_.resize(members_.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto place = static_cast<std::size_t>(parents[i]);
    // Rank 0 is at place 0; behind the relays nobody can take more.
    const int parent = place <= relays ? order[place] : 0;
    at(order[i]).parent = parent;
    if (parent != 0) children_[static_cast<std::size_t>(parent)].push_back(order[i]);
  }
  std::vector<proto::Channel> leaving;  // until they have left
  tell_places(order, leaving);
  std::set<int> waiting;
  for (const int rank : order) {
    if (rank == 0 || !there(rank) || at(rank).parent != 0) continue;
    at(rank).channel->keep_alive(settings_.deadline);
    waiting.insert(rank);
  }
  std::vector<int> missing;
  collect(std::move(waiting), 4 * settings_.deadline, [&](int, const ClusterMessage& message) {
    const auto* joined = std::get_if<Joined>(&message);
    if (joined != nullptr) missing.insert(missing.end(), joined->missing.begin(), joined->missing.end());
    return joined != nullptr;
  });
  for (const int rank : missing) {
    if (rank > 0 && rank < settings_.ranks && there(rank)) lose(rank, "did not come to its place in the tree");
  }
  orphans_.clear();
}

// From the top downwards, each rank's children before its place.
void Star::tell_places(const std::vector<int>& order, std::vector<proto::Channel>& leaving) {
  for (const int rank : order) {
    if (rank == 0 || !there(rank)) continue;
    BecomeRelay relay;
    for (const int child : children_[static_cast<std::size_t>(rank)]) relay.children.push_back({child, below(child)});
    if (!relay.children.empty() && !send(rank, encode_cluster(relay))) continue;
    const int parent = at(rank).parent;
    const Attach attach = parent == 0 ? Attach{} : Attach{at(parent).address, at(parent).card.relay_port};
    if (!send(rank, encode_cluster(attach)) || parent == 0) continue;
    leaving.push_back(std::move(*at(rank).channel));
    at(rank).channel.reset();
  }
}

void Star::readmit() {
  if (orphans_.empty()) return;
  for (Arrival& arrival : gate_.take({})) admit(std::move(arrival));
}

void Star::wait_for_orphans() {
  const auto give_up = steady_clock::now() + settings_.deadline;
  while (!orphans_.empty() && steady_clock::now() < give_up) {
    for (Arrival& arrival : gate_.take(give_up - steady_clock::now())) admit(std::move(arrival));
  }
  while (!orphans_.empty()) {
    const int rank = *orphans_.begin();
    const std::vector<int> lost = below(rank);
    lose(rank, "did not come back after the rank that it hung on was lost");
    for (const int other : lost) {
      if (there(other)) lose(other, "hung on a rank that is lost");
    }
  }
}

}  // namespace gdrperf::app
