#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/wire/relay.h"
#include "cluster/ranks/root.h"
#include "cluster/wire/wire.h"
#include "gdrperf/cluster/launch.h"
#include "gdrperf/engine/account.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/networks.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// This process as a rank: its NICs with an active port, or those of `wanted`. Throws
/// Error(kEnvironment) when there is none, Error(kUsage) for a wanted one that is not there.
Card own_card(const cluster::Launch& launch, const std::vector<std::string>& wanted,
              const std::string& leaf);

/// Tells rank 0 why this rank cannot measure, so that it is not waited for; nothing where rank 0 cannot be reached.
void report_trouble(const cluster::Launch& launch, const RootAddress& root, const proto::Token& token,
                    const std::string& trouble);

/// Of a run of bandwidth with messages of that size, at most.
std::uint64_t bytes_in_flight(std::uint64_t size_bytes);

/// Connects to rank 0, which may take until `patience` to come up, and
/// exchanges hellos and proofs. Throws Error(kPeer).
proto::Channel connect_root(const RootAddress& root, const proto::Token& token, std::chrono::nanoseconds patience);

struct AgentSettings {
  proto::Token token;
  std::chrono::nanoseconds deadline{};  ///< silence for so long, and the other end is gone
  bool tree = false;                    ///< more ranks than rank 0 talks to itself: some hang on others
  bool invited = false;                 ///< by a client of this server, which has no tree
  proto::Networks allow = {};           ///< where ranks may be that this one becomes a client of
  std::chrono::nanoseconds max_time{0};  ///< of one run served here; 0: no limit
  engine::Account* account = nullptr;    ///< that runs served here take from. Borrowed; null: one of their own
};

class DeviceServers;

/// A rank: does what rank 0 asks for, and passes on what is for ranks that hang on this one. One thread.
class Agent {
 public:
  Agent(Card card, AgentSettings settings);
  ~Agent();

  /// Until rank 0 says that it is over. Throws Error(kPeer) when rank 0 is gone; when another rank is on which
  /// this one hangs, it connects anew.
  void run(const std::function<proto::Channel()>& connect_to_root);
  /// The connection on which run() ended, if any.
  std::optional<proto::Channel> take_parent() { return std::exchange(parent_, std::nullopt); }

 private:
  bool take(const proto::Cluster& message);
  bool pass_on(const std::string& text);
  void hang_on(const Attach& attach);
  std::string answer(const ClusterMessage& order);

  Card card_;
  std::vector<CardDevice> described_ = {};  ///< of the devices that it serves
  AgentSettings settings_;
  std::optional<proto::Listener> listener_;  ///< of the tree
  std::optional<proto::Channel> parent_;
  bool parent_is_root_ = true;
  bool joined_ = false;  ///< the tree stands
  std::optional<Relay> relay_;
  std::unique_ptr<DeviceServers> servers_;
  std::size_t communicators_ = 0;  ///< named here
};

}  // namespace gdrperf::app
