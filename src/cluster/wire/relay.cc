#include "cluster/wire/relay.h"

#include <poll.h>

#include <algorithm>
#include <map>
#include <utility>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/admission.h"

namespace gdrperf::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kChildPatience = 3500ms;
// Messages passed on take their time at each level.
constexpr auto kOwnShare = 500ms;
constexpr int kRelayWaitMs = 100;
constexpr auto kLookAtAll = 500ms;

}  // namespace

Relay::Relay(const BecomeRelay& order, proto::Token token, std::chrono::nanoseconds deadline)
    : token_(std::move(token)), deadline_(deadline) {
  for (const RelayChild& child : order.children) {
    child_of_[child.rank] = children_.size();
    for (const int below : child.below) child_of_[below] = children_.size();
    children_.push_back({child, std::nullopt, {}});
  }
}

std::vector<int> Relay::gather(proto::Listener& listener) {
  const auto give_up = steady_clock::now() + deadline_;
  const auto all_here = [&] {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.channel.has_value(); });
  };
  while (!all_here() && steady_clock::now() < give_up) {
    pollfd entry{listener.fd(), POLLIN, 0};
    if (::poll(&entry, 1, kRelayWaitMs) <= 0) continue;
    if (auto channel = listener.accept()) greet(std::move(*channel));
  }
  std::vector<int> missing;
  for (Child& child : children_) {
    try {
      if (!child.channel) throw peer_error("did not come");
      const auto joined = expect_cluster<Joined>(*child.channel, 2 * deadline_);
      missing.insert(missing.end(), joined.missing.begin(), joined.missing.end());
      child.channel->keep_alive(deadline_);
    } catch (const Error&) {
      child.channel.reset();
      missing.push_back(child.who.rank);
      missing.insert(missing.end(), child.who.below.begin(), child.who.below.end());
    }
  }
  return missing;
}

// Strangers, and ranks that came to the wrong parent, are dropped.
void Relay::greet(proto::Channel channel) {
  try {
    proto::Hello own = proto::server_hello();
    own.token = static_cast<bool>(token_);
    const proto::Hello hello = proto::exchange_hello(channel, kChildPatience, own);
    [[maybe_unused]] const proto::Admission admission = prove_as_server(channel, token_, own, hello);
    const auto joined = expect_cluster<Joined>(channel, kChildPatience);
    for (Child& child : children_) {
      if (child.who.rank != joined.rank || child.channel) continue;
      child.channel = std::move(channel);
      return;
    }
  } catch (const Error&) {
  }
}

Relay::Child* Relay::child_for(int rank) {
  const auto at = child_of_.find(rank);
  return at == child_of_.end() ? nullptr : &children_[at->second];
}

void Relay::send(const Bundle& bundle, int own) {
  std::map<Child*, std::string> texts;
  const auto patience = std::max<std::chrono::milliseconds>(bundle.patience - kOwnShare, 0ms);
  for (Child& child : children_) child.due.clear();
  for (const auto& [rank, text] : bundle.texts) {
    Child* child = rank == own ? nullptr : child_for(rank);
    if (child == nullptr || !child->channel) continue;
    std::string& packed = texts[child];
    if (child->who.below.empty()) {
      packed = text;
    } else {
      if (packed.empty()) packed = begin_bundle(patience);
      add_to_bundle(rank, text, packed);
    }
    if (bundle.patience > 0ms) child->due.insert(rank);
  }
  for (auto& [child, text] : texts) {
    try {
      child->channel->send(proto::Cluster{std::move(text)});
    } catch (const Error& error) {
      lose(*child, error.what(), unsaid_);
    }
  }
}

void Relay::lose(Child& child, const std::string& why, std::string& bundle) {
  child.channel.reset();
  child.due.clear();
  add_to_bundle(child.who.rank, encode_cluster_text(Lost{why}), bundle);
}

void Relay::take_from(Child& child, std::string& bundle) {
  try {
    while (const auto message = child.channel->try_receive()) {
      proto::throw_if_failure(*child.channel, *message);
      const auto* cluster = std::get_if<proto::Cluster>(&*message);
      if (cluster == nullptr) proto::throw_unexpected(*child.channel, "cluster", *message);
      if (!is_bundle(cluster->text)) {
        add_to_bundle(child.who.rank, cluster->text, bundle);
        child.due.erase(child.who.rank);
        continue;
      }
      for (const auto& [rank, text] : read_bundle(cluster->text).texts) {
        add_to_bundle(rank, text, bundle);
        child.due.erase(rank);
      }
      // Whoever is below and has not answered is lost, and the child has said so.
      child.due.clear();
    }
  } catch (const Error& error) {
    lose(child, error.what(), bundle);
  }
}

void Relay::collect(std::chrono::nanoseconds patience, std::string& bundle) {
  const auto give_up = steady_clock::now() + patience;
  auto next_look = steady_clock::now();
  bundle += std::exchange(unsaid_, {});
  while (true) {
    // Polls all of them now and then, for silence; otherwise only those with data.
    if (steady_clock::now() >= next_look) {
      next_look = steady_clock::now() + kLookAtAll;
      for (Child& child : children_) {
        if (child.channel) take_from(child, bundle);
      }
    }
    std::vector<pollfd> entries;
    std::vector<Child*> due;
    const bool late = steady_clock::now() >= give_up;
    for (Child& child : children_) {
      if (child.due.empty()) continue;
      if (late) {
        lose(child, "no answer in time", bundle);
        continue;
      }
      entries.push_back({child.channel->fd(), POLLIN, 0});
      due.push_back(&child);
    }
    if (entries.empty()) return;
    ::poll(entries.data(), entries.size(), kRelayWaitMs);
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (entries[i].revents != 0) take_from(*due[i], bundle);
    }
  }
}

}  // namespace gdrperf::app
