// What rank 0 asks of the ranks.
#include <algorithm>
#include <chrono>

#include "cluster/wire/star.h"

namespace gdrperf::app {

using namespace std::chrono_literals;

void Star::open_slots(const std::vector<std::vector<int>>& counts) {
  std::map<int, std::string> orders;
  const auto count_of = [&](int rank, std::size_t device) {
    return static_cast<std::size_t>(std::max(1, counts[static_cast<std::size_t>(rank)][device]));
  };
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    OpenDevices open;
    for (std::size_t device = 0; device < at(rank).devices.size(); ++device) {
      open.devices.insert(open.devices.end(), count_of(rank, device), at(rank).devices[device]);
    }
    if (there(rank)) orders[rank] = encode_cluster_text(open);
  }
  collect(post(orders, settings_.deadline), settings_.deadline, [&](int rank, const ClusterMessage& message) {
    const auto* ports = std::get_if<Ports>(&message);
    if (ports == nullptr) return false;
    Member& member = at(rank);
    member.ports.clear();
    member.card.devices = ports->devices;
    member.slots.assign(member.devices.size(), {});
    auto next = ports->ports.begin();
    for (std::size_t device = 0; device < member.devices.size(); ++device) {
      const auto count = static_cast<std::ptrdiff_t>(count_of(rank, device));
      if (ports->ports.end() - next < count) return false;
      member.slots[device].assign(next, next + count);
      member.ports.push_back(*next);
      next += count;
    }
    return next == ports->ports.end();
  });
}

template <typename Answer, typename Order>
std::map<int, Answer> Star::answers_to(const std::map<int, Order>& orders, std::chrono::nanoseconds patience,
                                       const std::function<bool(int, const Answer&)>& fits) {
  std::map<int, Answer> answers;
  std::map<int, std::string> texts;
  for (const auto& [rank, order] : orders) {
    if (there(rank)) texts[rank] = encode_cluster_text(order);
  }
  collect(post(texts, patience), patience, [&](int rank, const ClusterMessage& message) {
    const auto* answer = std::get_if<Answer>(&message);
    if (answer == nullptr || !fits(rank, *answer)) return false;
    answers[rank] = *answer;
    return true;
  });
  return answers;
}

std::map<int, Rates> Star::measure(const std::map<int, Measure>& orders, std::chrono::nanoseconds expected) {
  return answers_to<Rates>(orders, expected + settings_.deadline, [&](int rank, const Rates& rates) {
    const Measure& order = orders.at(rank);
    return rates.id == order.id && rates.rates.size() == order.runs.size();
  });
}

std::map<int, CollectiveReady> Star::ask(const std::map<int, AskCollective>& orders) {
  // Whoever loads a GPU's libraries for the first time takes seconds.
  const auto any = [](int, const CollectiveReady&) { return true; };
  return answers_to<CollectiveReady>(orders, settings_.deadline + 30s, any);
}

std::map<int, Rates> Star::measure(const std::map<int, Collective>& orders) {
  std::chrono::nanoseconds limit{0};
  for (const auto& [rank, order] : orders) limit = std::max(limit, std::chrono::nanoseconds(order.limit_ns));
  // What is aborted takes its time as well.
  return answers_to<Rates>(orders, limit + 30s + settings_.deadline, [&](int rank, const Rates& rates) {
    const Collective& order = orders.at(rank);
    return rates.id == order.id && rates.rates.size() == order.ends.size();
  });
}

std::map<int, Counters> Star::counters() {
  std::map<int, ReadCounters> orders;
  for (int rank = 0; rank < settings_.ranks; ++rank) orders[rank] = {at(rank).devices};
  return answers_to<Counters>(orders, settings_.deadline, [&](int rank, const Counters& counters) {
    return counters.devices.size() == at(rank).devices.size();
  });
}

}  // namespace gdrperf::app
