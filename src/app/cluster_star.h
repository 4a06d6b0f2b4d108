#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster_wire.h"
#include "gdrperf/cluster/topology_file.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// A rank as rank 0 knows it.
struct Member {
  std::optional<proto::Channel> channel;  ///< none: never came, or lost
  Card card;
  std::string address;                ///< for the other ranks
  std::vector<std::string> devices;   ///< that it measures with
  std::vector<int> ports;             ///< of its servers, one per device
  std::string lost;                   ///< why it is not there; "" when it is
};

struct StarSettings {
  int ranks = 1;
  std::string address;  ///< of this host, as the others reach it
  proto::Token token;
  std::chrono::nanoseconds start_patience{};  ///< for ranks to come
  std::chrono::nanoseconds deadline{};        ///< silence, or an answer that overdue, loses a rank
};

/// Rank 0's side of the channels to all ranks, itself included. A rank that is
/// lost is said once and asked for nothing any more.
class Star {
 public:
  /// Takes `own` as rank 0, and whoever comes within the patience as the others;
  /// gives each its NICs (the ranks of one host share those out) and has them served.
  Star(proto::Listener listener, StarSettings settings, const Card& own);
  /// Tells all that it is over.
  ~Star();
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  const std::vector<Member>& members() const { return members_; }
  /// Goes before what the ranks say of their leaves; hosts by their full or short name.
  void set_leaves(const cluster::Leaves& leaves);
  bool there(int rank) const { return members_[static_cast<std::size_t>(rank)].channel.has_value(); }
  /// Measures as each rank is told; what comes back, by rank. Whoever has not answered
  /// when `expected` and the deadline are over is lost.
  std::map<int, Rates> measure(const std::map<int, Measure>& orders, std::chrono::nanoseconds expected);

 private:
  void start_own(const Card& own);
  void gather(proto::Listener& listener);
  void admit(proto::Channel channel);
  void open_devices();
  void lose(int rank, const std::string& why);
  bool send(int rank, const ClusterMessage& message);
  /// Hands each message of `waiting` ranks to `take` until all have said one.
  void collect(std::vector<int> waiting, std::chrono::nanoseconds patience,
               const std::function<bool(int, const ClusterMessage&)>& take);
  std::optional<ClusterMessage> look(int rank);
  void wait_readable(const std::vector<int>& waiting) const;

  StarSettings settings_;
  std::vector<Member> members_;
  std::thread own_;
};

/// Devices of each rank: those of one host share its devices out (rank i of n takes i, i + n, ...).
std::vector<std::vector<std::string>> share_devices(const std::vector<Member>& members);

}  // namespace gdrperf::app
