// Light ranks of `gdrperf cluster`, many in one process: they say hello, send a card, go to their place in the tree,
// pass on what is for others and answer with made-up rates.
#pragma once

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/wire/round_wire.h"
#include "cluster/wire/tree.h"
#include "cluster/wire/wire.h"
#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::bench {

using namespace gdrperf::app;
using namespace std::chrono_literals;

// A run of that length asks the first level to answer for all below, at once: what each of them would take runs on
// machines of their own.
inline constexpr std::int64_t kFirstLevelAnswers = 1;

inline Card card_of(int rank, int ranks) {
  Card card;
  card.rank = rank;
  card.ranks = ranks;
  card.host = fmt::format("node{}", rank);
  card.host_id = card.host;
  card.kernel = "6.1.0-28-amd64";
  card.version = "bench";
  for (int i = 0; i < 8; ++i) {
    card.devices.push_back({fmt::format("mlx5_{}", i), "hardware", "mlx5_core", "28.39.1002", 4096, 400, "RoCE v2/IPv4",
                            "32.0 GT/s PCIe x16", i / 4, 1, "", fmt::format("0000:{:x}7:00.0", i), "PIX"});
  }
  return card;
}

// Of --job: a NIC's port stands for it, in the orders that name it as the peer.
inline constexpr int kFirstPort = 1;
inline constexpr int kRails = 8;
inline constexpr int kSlowRank = 1234;
inline constexpr int kSlowRail = 5;

// In 0..1, always the same for the same numbers.
inline double made_up(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c * 0x94d049bb133111eb;
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

// About normal, of sigma 1.
inline double scattered(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 6; ++i) sum += made_up(a + i * 1000003, b, c);
  return (sum - 3) * 1.41421356;
}

inline ClusterRate made_up_rate(int from, const ClusterRun& run, const Measure& measure) {
  const int to = run.port - kFirstPort;
  const auto id = static_cast<std::uint64_t>(measure.id);
  const auto a = static_cast<std::uint64_t>(from);
  const auto b = static_cast<std::uint64_t>(to);
  double factor = std::exp(0.005 * (scattered(a, 1, 0) + scattered(b, 2, 0)) + 0.01 * scattered(a, b, id));
  if (made_up(a, b, id + 7777777) < 0.2) factor *= 0.4 + 0.55 * made_up(b, a, id);
  const int slow = kSlowRank * kRails + kSlowRail;
  if (from == slow || to == slow) factor *= 0.9;
  if (measure.latency) return {0, 2.5 / factor, ""};
  return {(measure.size_bytes < 4096 ? 0.05 : 48.7) * factor, 0, ""};
}

class Light {
 public:
  Light(int rank, int ranks, int root_port, bool relay) : card_(card_of(rank, ranks)) {
    if (relay) listener_.emplace("127.0.0.1", 0);
    if (listener_) card_.relay_port = listener_->port();
    parent_.emplace(proto::connect_tcp("127.0.0.1", root_port, 3s));
    parent_->send(proto::own_hello());
    // Without a token nothing has to be waited for.
    parent_->send(encode_cluster(card_));
  }
  int rank() const { return card_.rank; }
  const proto::Listener* listener() const { return listener_ ? &*listener_ : nullptr; }
  proto::Channel& parent() { return *parent_; }

  // False when it is over.
  bool ready(int fd) {
    if (listener_ && fd == listener_->fd()) {
      accept();
    } else if (parent_ && fd == parent_->fd()) {
      while (const auto message = parent_->try_receive()) {
        if (const auto* cluster = std::get_if<proto::Cluster>(&*message); cluster && !take(cluster->text)) return false;
        if (fd != parent_->fd()) break;
      }
    } else if (const auto at = by_fd_.find(fd); at != by_fd_.end()) {
      hear(at->second);
    }
    return true;
  }

  inline static std::function<void(int, Light&)> watch;
  inline static bool made_up_rates = false;

 private:
  struct Child {
    proto::Channel channel;
    int rank = -1;  ///< until it says so
  };

  void accept() {
    while (auto channel = listener_->accept()) {
      const int fd = channel->fd();
      by_fd_.insert_or_assign(fd, Child{std::move(*channel)});
      by_fd_.at(fd).channel.send(proto::server_hello());
      watch(fd, *this);
    }
  }

  bool take(const std::string& text) {
    if (is_bundle(text)) return pass_on(text);
    const ClusterMessage order = decode_cluster_text(text, "root");
    if (std::holds_alternative<End>(order)) return false;
    if (const auto* relay = std::get_if<BecomeRelay>(&order)) {
      for (const RelayChild& child : relay->children) {
        child_of_[child.rank] = child.rank;
        for (const int below : child.below) child_of_[below] = child.rank;
        leaf_[child.rank] = child.below.empty();
        ++expected_;
      }
    } else if (const auto* attach = std::get_if<Attach>(&order)) {
      placed_ = true;
      if (attach->port != 0) {
        parent_.emplace(proto::connect_tcp("127.0.0.1", attach->port, 3s));
        watch(parent_->fd(), *this);
        parent_->send(proto::own_hello());
        parent_->send(encode_cluster(Joined{card_.rank, {}}));
      }
      say_joined();
    } else {
      parent_->send(proto::Cluster{answer(order)});
    }
    return true;
  }

  void say_joined() {
    if (placed_ && joined_children_ == expected_) parent_->send(encode_cluster(Joined{card_.rank, {}}));
  }

  std::string answer(const ClusterMessage& order) {
    if (std::holds_alternative<ReadCounters>(order)) {
      gdrperf::app::Counters counters;
      counters.devices.resize(kRails);
      for (auto& of_device : counters.devices) of_device = {{"local_ack_timeout_err", 3}, {"packet_seq_err", 0}};
      return encode_cluster_text(counters);
    }
    const auto* measure = std::get_if<Measure>(&order);
    if (measure == nullptr) {
      Ports ports{{}, card_.devices};
      for (int rail = 0; rail < kRails; ++rail) ports.ports.push_back(kFirstPort + card_.rank * kRails + rail);
      return encode_cluster_text(ports);
    }
    if (made_up_rates) {
      Rates rates{measure->id, {}};
      for (const ClusterRun& run : measure->runs) {
        const int rail = run.device.back() - '0';
        rates.rates.push_back(made_up_rate(card_.rank * kRails + rail, run, *measure));
      }
      return encode_cluster_text(rates);
    }
    return encode_cluster_text(Rates{measure->id, std::vector<ClusterRate>(measure->runs.size(), {48.7, 0, ""})});
  }

  bool pass_on(const std::string& text) {
    const Bundle bundle = read_bundle(text);
    answers_ = begin_bundle({});
    due_ = 0;
    const auto first = bundle.texts.empty() ? std::nullopt : unpack_round(bundle.texts[0].second);
    const bool at_once = first && std::get<Measure>(*first).duration_ns == kFirstLevelAnswers;
    if (at_once) {
      const std::string one = answer(*first);
      for (const auto& [rank, part] : bundle.texts) add_to_bundle(rank, one, answers_);
      parent_->send(proto::Cluster{answers_});
      return true;
    }
    std::map<int, std::string> texts;
    bool goes_on = true;
    for (const auto& [rank, part] : bundle.texts) {
      if (rank == card_.rank) {
        const ClusterMessage order = decode_cluster_text(part, "root");
        if (std::holds_alternative<End>(order)) goes_on = false;
        else add_to_bundle(rank, answer(order), answers_);
        continue;
      }
      const int child = child_of_.at(rank);
      std::string& packed = texts[child];
      if (leaf_.at(child)) {
        packed = part;
      } else {
        if (packed.empty()) packed = begin_bundle(bundle.patience);
        add_to_bundle(rank, part, packed);
      }
      ++due_;
    }
    for (auto& [child, packed] : texts) by_fd_.at(children_.at(child)).channel.send(proto::Cluster{std::move(packed)});
    if (goes_on && due_ == 0) parent_->send(proto::Cluster{answers_});
    return goes_on;
  }

  void hear(Child& child) {
    while (const auto message = child.channel.try_receive()) {
      const auto* cluster = std::get_if<proto::Cluster>(&*message);
      if (cluster == nullptr) continue;
      if (cluster->text.starts_with('{')) {
        const ClusterMessage message_of_child = decode_cluster(*cluster, "child");
        if (const auto* joined = std::get_if<Joined>(&message_of_child)) {
          if (std::exchange(child.rank, joined->rank) >= 0) {
            ++joined_children_;
            say_joined();
          }
          children_[child.rank] = child.channel.fd();
          continue;
        }
      }
      if (is_bundle(cluster->text)) {
        for (const auto& [rank, text] : read_bundle(cluster->text).texts) {
          add_to_bundle(rank, text, answers_);
          --due_;
        }
      } else {
        add_to_bundle(child.rank, cluster->text, answers_);
        --due_;
      }
      if (due_ == 0) parent_->send(proto::Cluster{answers_});
    }
  }

  Card card_;
  std::optional<proto::Listener> listener_;
  std::optional<proto::Channel> parent_;
  std::map<int, Child> by_fd_;
  std::map<int, int> children_;  ///< descriptor, by rank
  std::map<int, int> child_of_;
  std::map<int, bool> leaf_;
  bool placed_ = false;
  std::size_t expected_ = 0;
  std::size_t joined_children_ = 0;
  std::size_t due_ = 0;
  std::string answers_;
};

// Ranks from `first` up to `last` as light agents, until rank 0 ends them.
inline void run_agents(int first, int last, int ranks, int root_port, bool relays) {
  const int events = ::epoll_create1(EPOLL_CLOEXEC);
  Light::watch = [events](int fd, Light& light) {
    epoll_event event{EPOLLIN,
                      {.u64 = static_cast<std::uint64_t>(light.rank()) << 32 | static_cast<std::uint32_t>(fd)}};
    ::epoll_ctl(events, EPOLL_CTL_ADD, fd, &event);
  };
  std::map<int, std::unique_ptr<Light>> lights;
  const auto look = [&](int patience_ms) {
    epoll_event ready[256];
    const int count = ::epoll_wait(events, ready, 256, patience_ms);
    for (int i = 0; i < count; ++i) {
      const auto at = lights.find(static_cast<int>(ready[i].data.u64 >> 32));
      if (at == lights.end()) continue;
      try {
        if (at->second->ready(static_cast<int>(ready[i].data.u64 & 0xffffffff))) continue;
      } catch (const Error& error) {
        fmt::print(stderr, "agent {}: {}\n", at->first, error.what());
      }
      lights.erase(at);
    }
  };
  for (int rank = first; rank < last; ++rank) {
    auto light = std::make_unique<Light>(rank, ranks, root_port, relays);
    Light::watch(light->parent().fd(), *light);
    if (light->listener() != nullptr) Light::watch(light->listener()->fd(), *light);
    lights.emplace(rank, std::move(light));
    if (rank % 32 == 0) look(0);
  }
  while (!lights.empty()) look(1000);
}

inline pid_t start_agents(int first, int last, int ranks, int root_port, bool relays) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    run_agents(first, last, ranks, root_port, relays);
    ::_exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "agents: {}\n", error.what());
    ::_exit(1);
  }
}

}  // namespace gdrperf::bench
