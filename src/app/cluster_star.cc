#include "cluster_star.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "cluster_agent.h"
#include "terminal.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kRankPatience = 3500ms;
// As long as a card may be: a host of many devices.
constexpr std::size_t kMaxCardBytes = 64u << 10;

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
  return fmt::format("{:.3g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

std::vector<std::vector<std::string>> share_devices(const std::vector<Member>& members) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> hosts;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Member& member = members[rank];
    if (member.channel) hosts[{member.card.host_id, member.card.host}].push_back(rank);
  }
  std::vector<std::vector<std::string>> shares(members.size());
  for (const auto& [host, ranks] : hosts) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto& devices = members[ranks[i]].card.devices;
      auto& share = shares[ranks[i]];
      for (std::size_t at = i; at < devices.size(); at += ranks.size()) share.push_back(devices[at].name);
      // More ranks than NICs: they share ports, and with them rates.
      if (share.empty() && !devices.empty()) share.push_back(devices[i % devices.size()].name);
    }
  }
  return shares;
}

Star::Star(proto::Listener listener, StarSettings settings, const Card& own)
    : settings_(std::move(settings)), members_(static_cast<std::size_t>(settings_.ranks)) {
  start_own(own);
  gather(listener);
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    if (!there(rank)) lose(rank, "did not come within " + in_seconds(settings_.start_patience));
  }
  open_devices();
}

Star::~Star() {
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    if (there(rank)) send(rank, End{});
  }
  members_.clear();
  if (own_.joinable()) own_.join();
}

// Rank 0 measures like any other.
void Star::start_own(const Card& own) {
  auto [root, agent] = proto::local_channel_pair();
  own_ = std::thread([channel = std::move(agent), own, token = settings_.token]() mutable {
    try {
      run_agent(channel, own, token);
    } catch (const std::exception&) {
      // The other half is told by the hang-up.
    }
  });
  Member& member = members_[0];
  member.channel = std::move(root);
  member.card = own;
  member.address = settings_.address;
  expect_cluster<Card>(*member.channel, settings_.deadline);
}

void Star::gather(proto::Listener& listener) {
  const auto give_up = steady_clock::now() + settings_.start_patience;
  const auto all_there = [&] {
    return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.channel.has_value(); });
  };
  while (!all_there()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - steady_clock::now());
    if (left.count() <= 0) return;
    pollfd entry{listener.fd(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
    if (auto channel = listener.accept()) admit(std::move(*channel));
  }
}

void Star::admit(proto::Channel channel) {
  try {
    channel.limit_frames(kMaxCardBytes);
    proto::Hello own = proto::server_hello();
    own.token = static_cast<bool>(settings_.token);
    const proto::Hello hello = proto::exchange_hello(channel, kRankPatience, own);
    prove_as_server(channel, settings_.token, own, hello);
    Card card = expect_cluster<Card>(channel, kRankPatience);
    if (card.ranks != settings_.ranks || card.rank < 1 || card.rank >= settings_.ranks ||
        there(card.rank)) {
      const std::string why = fmt::format("rank {} of {} has no place among {} ranks, or is there already",
                                          card.rank, card.ranks, settings_.ranks);
      channel.send(proto::Failure{static_cast<int>(ExitCode::kUsage), why,
                                  "give each process a rank of its own and all the same number"});
      throw usage_error(why);
    }
    Member& member = members_[static_cast<std::size_t>(card.rank)];
    member.address = address_of(channel.peer());
    if (is_loopback(member.address)) member.address = settings_.address;
    channel.keep_alive(settings_.deadline);
    member.card = std::move(card);
    member.channel = std::move(channel);
  } catch (const Error& error) {
    say(fmt::format("not admitted: {}", error.what()));
  }
}

void Star::set_leaves(const cluster::Leaves& leaves) {
  for (Member& member : members_) {
    const std::string& host = member.card.host;
    auto at = leaves.find(host);
    if (at == leaves.end()) at = leaves.find(host.substr(0, host.find('.')));
    if (at != leaves.end()) member.card.leaf = at->second;
  }
}

void Star::open_devices() {
  const auto shares = share_devices(members_);
  std::vector<int> waiting;
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    member.devices = shares[static_cast<std::size_t>(rank)];
    if (there(rank) && send(rank, OpenDevices{member.devices})) waiting.push_back(rank);
  }
  collect(waiting, settings_.deadline, [&](int rank, const ClusterMessage& message) {
    const auto* ports = std::get_if<Ports>(&message);
    Member& member = members_[static_cast<std::size_t>(rank)];
    if (ports == nullptr || ports->ports.size() != member.devices.size()) return false;
    member.ports = ports->ports;
    return true;
  });
}

std::map<int, Rates> Star::measure(const std::map<int, Measure>& orders, std::chrono::nanoseconds expected) {
  std::map<int, Rates> answers;
  std::vector<int> waiting;
  for (const auto& [rank, order] : orders) {
    if (there(rank) && send(rank, order)) waiting.push_back(rank);
  }
  collect(waiting, expected + settings_.deadline, [&](int rank, const ClusterMessage& message) {
    const auto* rates = std::get_if<Rates>(&message);
    const Measure& order = orders.at(rank);
    if (rates == nullptr || rates->id != order.id || rates->rates.size() != order.runs.size()) return false;
    answers[rank] = *rates;
    return true;
  });
  return answers;
}

void Star::lose(int rank, const std::string& why) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.channel.reset();
  member.lost = why;
  say(fmt::format("rank {}{} is lost: {}", rank,
                  member.card.host.empty() ? "" : " on " + member.card.host, why));
}

bool Star::send(int rank, const ClusterMessage& message) {
  try {
    members_[static_cast<std::size_t>(rank)].channel->send(encode_cluster(message));
    return true;
  } catch (const Error& error) {
    lose(rank, error.what());
    return false;
  }
}

void Star::collect(std::vector<int> waiting, std::chrono::nanoseconds patience,
                   const std::function<bool(int, const ClusterMessage&)>& take) {
  const auto give_up = steady_clock::now() + patience;
  while (!waiting.empty()) {
    const bool late = steady_clock::now() >= give_up;
    std::erase_if(waiting, [&](int rank) {
      const auto message = look(rank);
      if (!there(rank)) return true;
      if (message && !take(rank, *message)) lose(rank, "sent what was not asked for");
      else if (!message && late) lose(rank, "no answer within " + in_seconds(patience));
      else return message.has_value();
      return true;
    });
    if (!waiting.empty()) wait_readable(waiting);
  }
}

std::optional<ClusterMessage> Star::look(int rank) {
  proto::Channel& channel = *members_[static_cast<std::size_t>(rank)].channel;
  try {
    const auto message = channel.try_receive();
    if (!message) return std::nullopt;
    proto::throw_if_failure(channel, *message);
    const auto* cluster = std::get_if<proto::Cluster>(&*message);
    if (cluster == nullptr) proto::throw_unexpected(channel, "cluster", *message);
    return decode_cluster(*cluster, channel.peer());
  } catch (const Error& error) {
    lose(rank, error.what());
    return std::nullopt;
  }
}

// Heartbeats wake it, and silence is looked for.
void Star::wait_readable(const std::vector<int>& waiting) const {
  std::vector<pollfd> entries;
  for (const int rank : waiting) {
    entries.push_back({members_[static_cast<std::size_t>(rank)].channel->fd(), POLLIN, 0});
  }
  ::poll(entries.data(), entries.size(), 100);
}

}  // namespace gdrperf::app
