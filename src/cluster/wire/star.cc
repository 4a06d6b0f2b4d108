#include "cluster/wire/star.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/ranks/agent.h"
#include "app/output/terminal.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kWaitMs = 100;
constexpr auto kLookInterval = 500ms;
// So often a signal is looked for meanwhile.
constexpr auto kStopInterval = 200ms;

// "client 10.0.0.2:4711" is at 10.0.0.2, "client [fd00::2]:4711" at fd00::2.
std::string address_of(const std::string& peer) {
  std::string text = peer.substr(peer.find(' ') + 1);
  text = text.substr(0, text.rfind(':'));
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  return text;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string in_seconds(std::chrono::nanoseconds time) {
  return fmt::format("{} s", plain_digits(std::chrono::duration<double>(time).count(), 3));
}

}  // namespace

std::vector<std::vector<std::string>> share_devices(const std::vector<Member>& members) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> hosts;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Member& member = members[rank];
    if (member.here && !member.card.devices.empty()) hosts[{member.card.host_id, member.card.host}].push_back(rank);
  }
  std::vector<std::vector<std::string>> shares(members.size());
  for (const auto& [host, ranks] : hosts) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto& devices = members[ranks[i]].card.devices;
      auto& share = shares[ranks[i]];
      if (members[ranks[i]].card.devices_given) {
        for (const CardDevice& device : devices) share.push_back(device.name);
        continue;
      }
      for (std::size_t at = i; at < devices.size(); at += ranks.size()) share.push_back(devices[at].name);
      // More ranks than NICs: they share ports, and with them rates.
      if (share.empty() && !devices.empty()) share.push_back(devices[i % devices.size()].name);
    }
  }
  return shares;
}

Star::Star(proto::Listener listener, StarSettings settings, const Card& own)
    : settings_(std::move(settings)),
      members_(static_cast<std::size_t>(settings_.ranks)),
      gate_(std::move(listener), settings_.token) {
  start_own(own);
  gather();
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    if (!there(rank))
      lose(rank, stopped() ? "had not come when a signal ended the wait"
                           : "did not come within " + in_seconds(settings_.start_patience));
  }
  if (settings_.fanout > 0) build_rank_tree();
  open_devices();
}

Star::~Star() {
  try {
    std::map<int, std::string> orders;
    for (int rank = 0; rank < settings_.ranks; ++rank) {
      if (there(rank)) orders[rank] = encode_cluster_text(End{});
    }
    post(orders, {});
  } catch (const std::exception&) {
    // They end when the connection does.
  }
}

// Rank 0 measures like any other.
void Star::start_own(const Card& own) {
  auto [root, agent] = proto::local_channel_pair();
  auto measure = [channel = std::move(agent), own, settings = settings_]() mutable {
    Agent(own, {settings.token, settings.deadline, false}).run([&] { return std::move(channel); });
  };
  // The other half is told by the hang-up.
  own_ = start_thread("rank 0's measurements", std::move(measure), [](const std::exception_ptr&) {});
  Member& member = members_[0];
  member.channel = std::move(root);
  member.here = true;
  member.card = own;
  member.address = settings_.address;
  expect_cluster<Card>(*member.channel, settings_.deadline);
  member.channel->keep_alive(settings_.deadline);
}

void Star::gather() {
  std::jthread bringer;
  if (settings_.bring) {
    const auto bring = [this] { settings_.bring([this](Arrival arrival) { gate_.put(std::move(arrival)); }); };
    bringer = start_thread("the invitation of hosts", bring,
                           [this](const std::exception_ptr& failure) { gate_.fail(failure); });
  }
  const auto give_up = steady_clock::now() + settings_.start_patience;
  auto say_at = steady_clock::now() + kSayMissing;
  for (int missing = settings_.ranks - 1; missing > 0;) {
    const auto now = steady_clock::now();
    if (now >= give_up || stopped()) return;
    if (now >= say_at) {
      say_missing();
      say_at = give_up;
    }
    const auto wait = std::min<std::chrono::nanoseconds>(std::min(give_up, say_at) - now, kStopInterval);
    for (Arrival& arrival : gate_.take(wait)) missing -= int{admit(std::move(arrival))};
  }
}

void Star::say_missing() const {
  constexpr std::size_t kMostNamed = 8;
  std::vector<int> missing;
  for (int rank = 1; rank < settings_.ranks; ++rank) {
    if (!there(rank) && at(rank).lost.empty()) missing.push_back(rank);
  }
  const std::size_t more = missing.size() - std::min(missing.size(), kMostNamed);
  missing.resize(missing.size() - more);
  say(fmt::format("waiting for rank {}{}, {} in all (--start-timeout)", fmt::join(missing, ", "),
                  more > 0 ? fmt::format(" and {} more", more) : "", in_seconds(settings_.start_patience)));
}

bool Star::admit(Arrival arrival) {
  Card& card = arrival.card;
  const bool orphan = orphans_.contains(card.rank);
  if (card.ranks != settings_.ranks || card.rank < 1 || card.rank >= settings_.ranks || (there(card.rank) && !orphan) ||
      !at(card.rank).lost.empty()) {
    const std::string why = fmt::format("rank {} of {} has no place among {} ranks, or is there already", card.rank,
                                        card.ranks, settings_.ranks);
    say("not admitted: " + why);
    try {
      arrival.channel.send(proto::Failure{static_cast<int>(ExitCode::kUsage), why,
                                          "give each process a rank of its own and all the same number"});
    } catch (const Error&) {
      // It is gone.
    }
    return false;
  }
  Member& member = at(card.rank);
  if (!card.trouble.empty()) {
    const int rank = card.rank;
    member.card = std::move(card);
    lose(rank, member.card.trouble);
    return true;
  }
  member.address = address_of(arrival.channel.peer());
  if (is_loopback(member.address) && !settings_.address.empty()) member.address = settings_.address;
  if (orphan || settings_.fanout == 0) arrival.channel.keep_alive(settings_.deadline);
  orphans_.erase(card.rank);
  member.here = true;
  member.card = std::move(card);
  member.channel = std::move(arrival.channel);
  return true;
}

void Star::set_leaves(const cluster::Leaves& leaves, const cluster::Pods& pods) {
  for (Member& member : members_) {
    const std::string& host = member.card.host;
    auto at = leaves.find(host);
    if (at == leaves.end()) at = leaves.find(host.substr(0, host.find('.')));
    if (at == leaves.end()) continue;
    member.card.leaf = at->second;
    const auto pod = pods.find(at->second);
    member.card.pod = pod == pods.end() ? "" : pod->second;
  }
}

void Star::open_devices() {
  const auto shares = share_devices(members_);
  std::vector<std::vector<int>> counts;
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    at(rank).devices = shares[static_cast<std::size_t>(rank)];
    counts.emplace_back(at(rank).devices.size(), 1);
  }
  open_slots(counts);
}

void Star::lose(int rank, const std::string& why) {
  Member& member = at(rank);
  if (!member.lost.empty()) return;
  member.channel.reset();
  member.here = false;
  member.lost = why;
  ++losses_;
  orphans_.erase(rank);
  say(fmt::format("rank {}{} is lost: {}", rank,
                  member.card.host.empty() ? "" : " on " + member.card.host, why));
  if (children_.empty()) return;
  for (const int child : children_[static_cast<std::size_t>(rank)]) {
    if (!there(child)) continue;
    at(child).parent = 0;
    if (!at(child).channel) orphans_.insert(child);
  }
}

bool Star::send(int rank, proto::Cluster message) {
  try {
    at(rank).channel->send(message);
    return true;
  } catch (const Error& error) {
    lose(rank, error.what());
    return false;
  }
}

std::set<int> Star::post(const std::map<int, std::string>& orders, std::chrono::nanoseconds patience) {
  std::map<int, std::string> texts;  // by whom they go through
  std::set<int> waiting;
  for (const auto& [rank, order] : orders) {
    const int top = top_of(rank);
    if (!at(top).channel) continue;
    waiting.insert(rank);
    std::string& text = texts[top];
    if (children_.empty() || children_[static_cast<std::size_t>(top)].empty()) {
      text = order;
    } else {
      if (text.empty()) text = begin_bundle(std::chrono::duration_cast<std::chrono::milliseconds>(patience));
      add_to_bundle(rank, order, text);
    }
  }
  for (auto& [top, text] : texts) send(top, {std::move(text)});
  return waiting;
}

void Star::collect(std::set<int> waiting, std::chrono::nanoseconds patience, const Take& take) {
  // A relay that gives somebody up says so in time.
  const auto give_up = steady_clock::now() + patience + (children_.empty() ? 0s : 1s);
  // Children of a lost rank have not got the order, or have no parent to answer: even if they are here again by now.
  std::size_t seen_losses = losses_ - 1;
  const auto forget_lost = [&] {
    if (std::exchange(seen_losses, losses_) == losses_) return;
    std::erase_if(waiting, [&](int rank) { return !there(rank) || orphans_.contains(top_of(rank)); });
  };
  forget_lost();
  while (true) {
    const bool late = steady_clock::now() >= give_up;
    readmit();
    for (const int top : wait_readable()) hear(top, waiting, take);
    forget_lost();
    if (waiting.empty()) break;
    if (!late) continue;
    for (const int rank : std::exchange(waiting, {})) lose(rank, "no answer within " + in_seconds(patience));
  }
  wait_for_orphans();
}

void Star::hear(int top, std::set<int>& waiting, const Take& take) {
  while (there(top) && at(top).channel) {
    const auto message = look(top);
    if (!message) return;
    try {
      if (!is_bundle(message->text)) {
        hear_one(top, message->text, waiting, take);
        continue;
      }
      for (const auto& [rank, text] : read_bundle(message->text).texts) {
        const bool known = rank >= 0 && rank < settings_.ranks && top_of(rank) == top;
        if (!known) throw peer_error("speaks for a rank that does not hang on it");
        hear_one(rank, text, waiting, take);
      }
    } catch (const Error& error) {
      lose(top, error.what());
    }
  }
}

void Star::hear_one(int rank, std::string_view text, std::set<int>& waiting, const Take& take) {
  if (!there(rank)) return;
  const ClusterMessage message = decode_cluster_text(text, fmt::format("rank {}", rank));
  if (const auto* lost = std::get_if<Lost>(&message)) lose(rank, lost->why);
  else if (!waiting.contains(rank) || !take(rank, message)) lose(rank, "sent what was not asked for");
  waiting.erase(rank);
}

std::optional<proto::Cluster> Star::look(int rank) {
  proto::Channel& channel = *at(rank).channel;
  try {
    auto message = channel.try_receive();
    if (!message) return std::nullopt;
    proto::throw_if_failure(channel, *message);
    auto* cluster = std::get_if<proto::Cluster>(&*message);
    if (cluster == nullptr) proto::throw_unexpected(channel, "cluster", *message);
    return std::move(*cluster);
  } catch (const Error& error) {
    lose(rank, error.what());
    return std::nullopt;
  }
}

// Heartbeats wake it; where nothing wakes it, silence is looked for.
std::vector<int> Star::wait_readable() {
  std::vector<pollfd> entries;
  std::vector<int> ranks;
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    if (!at(rank).channel) continue;
    entries.push_back({at(rank).channel->fd(), POLLIN, 0});
    ranks.push_back(rank);
  }
  ::poll(entries.data(), entries.size(), kWaitMs);
  const bool look_at_all = steady_clock::now() >= next_look_;
  if (look_at_all) next_look_ = steady_clock::now() + kLookInterval;
  std::vector<int> readable;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (look_at_all || entries[i].revents != 0) readable.push_back(ranks[i]);
  }
  return readable;
}

}  // namespace gdrperf::app
