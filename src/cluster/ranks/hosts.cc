#include "cluster/ranks/hosts.h"

#include <algorithm>
#include <exception>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cluster/ranks/agent.h"
#include "app/options/options.h"
#include "gdrperf/base/error.h"
#include "gdrperf/base/mutex.h"
#include "gdrperf/base/thread.h"
#include "gdrperf/base/units.h"
#include "gdrperf/proto/tcp_port.h"
#include "app/options/lists.h"
#include "app/output/terminal.h"
#include "gdrperf/proto/admission.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kHostHelloPatience = 3500ms;

proto::Channel take_turn(const HostPort& host, const proto::Token& token, std::chrono::nanoseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  proto::Channel channel = proto::connect_tcp(host.host, host.port, 3s);
  proto::Hello own = proto::own_hello();
  own.token = static_cast<bool>(token);
  const proto::Hello server = proto::exchange_hello(channel, kHostHelloPatience, own);
  [[maybe_unused]] const proto::Admission admission = prove_as_client(channel, token, own, server);
  channel.send(proto::Enter{});
  channel.keep_alive();
  while (true) {
    // A server says every second whom it serves.
    const proto::Message message = channel.receive(proto::Channel::kSilence);
    if (std::holds_alternative<proto::Turn>(message)) return channel;
    const auto* busy = std::get_if<proto::Busy>(&message);
    if (busy == nullptr) {
      proto::throw_if_failure(channel, message);
      proto::throw_unexpected(channel, "turn", message);
    }
    if (std::chrono::steady_clock::now() > give_up)
      throw peer_error(channel.peer() + " is serving " + printable(busy->serving));
  }
}

// The advice is said here, the reason by rank 0, which waits no longer. The host itself may be well: it is not named in
// the card, so that nobody drains it.
Arrival absent(int rank, int ranks, const HostPort& host, const std::exception_ptr& failure) {
  Card card;
  card.rank = rank;
  card.ranks = ranks;
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    card.trouble = fmt::format("{}: {}", host.host, error.what());
    if (!error.hint().empty()) say(error.hint());
  } catch (const std::exception& error) {
    card.trouble = fmt::format("{}: {}", host.host, error.what());
  }
  auto [own, other] = proto::local_channel_pair();
  return {std::move(own), std::move(card)};
}

}  // namespace

std::vector<HostPort> parse_hosts(const std::string& text, int default_port) {
  std::vector<HostPort> hosts;
  std::set<std::pair<std::string, int>> known;
  for (const std::string& each : split_list(text, "--hosts")) {
    auto [host, port] = proto::host_and_port(each, default_port, "--hosts");
    if (host.empty()) throw usage_error("--hosts: a name is empty", "type --hosts HOST[:PORT],...");
    if (!known.emplace(host, port).second) throw usage_error(fmt::format("--hosts: {}:{} is there twice", host, port));
    hosts.push_back({std::move(host), port});
  }
  return hosts;
}

void invite_hosts(const std::vector<HostPort>& hosts, const proto::Token& token, std::chrono::nanoseconds patience,
                  std::chrono::nanoseconds deadline, const std::function<void(Arrival)>& put) {
  Mutex putting;
  const auto ranks = static_cast<int>(hosts.size()) + 1;
  // The last to be made: it joins before what the threads use goes.
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const int rank = static_cast<int>(i) + 1;
    const auto invite = [&, i, rank] {
      proto::Channel channel = take_turn(hosts[i], token, patience);
      channel.send(encode_cluster(Invite{rank, ranks, std::chrono::duration<double>(deadline).count()}));
      Card card = expect_cluster<Card>(channel, deadline);
      const MutexLock lock(putting);
      put({std::move(channel), std::move(card)});
    };
    const auto failed = [&, i, rank](const std::exception_ptr& failure) {
      Arrival arrival = absent(rank, ranks, hosts[i], failure);
      const MutexLock lock(putting);
      put(std::move(arrival));
    };
    threads.push_back(start_thread("a host to invite", invite, failed));
  }
}

void serve_as_rank(proto::Channel& channel, const proto::Admission& /*admission*/, const proto::Cluster& first,
                   const RankTerms& terms) {
  const ClusterMessage message = decode_cluster(first, channel.peer());
  const auto* invite = std::get_if<Invite>(&message);
  if (invite == nullptr) throw peer_error(channel.peer() + ": sent another message than was due");
  cluster::Launch launch;
  launch.rank = invite->rank;
  launch.ranks = invite->ranks;
  const auto deadline = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(invite->deadline_s, 1.0, 3600.0)));
  Agent agent(own_card(launch, {}, ""),
              {terms.token, deadline, false, true, terms.allow, terms.max_time, terms.account});
  const auto give_back = [&] {
    if (auto parent = agent.take_parent()) channel = std::move(*parent);
  };
  try {
    agent.run([&] { return std::move(channel); });
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
}

}  // namespace gdrperf::app
