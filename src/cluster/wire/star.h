#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/ranks/gate.h"
#include "cluster/wire/tree.h"
#include "cluster/wire/wire.h"
#include "gdrperf/cluster/topology_file.h"
#include "gdrperf/proto/channel.h"
#include "gdrperf/proto/token.h"

namespace gdrperf::app {

/// Who waits for ranks reports it after so long.
inline constexpr std::chrono::seconds kSayMissing{4};

/// A rank as rank 0 knows it.
struct Member {
  bool here = false;                      ///< came, and is not lost
  std::optional<proto::Channel> channel;  ///< of who hangs on rank 0 itself
  int parent = 0;                         ///< rank that it hangs on
  Card card;
  std::string address;                ///< for the other ranks
  std::vector<std::string> devices;   ///< that it measures with
  std::vector<int> ports;             ///< of its servers, one per device
  std::vector<std::vector<int>> slots = {};  ///< of all its servers, by device (open_slots())
  std::string lost;                   ///< why it is not there; "" when it is
};

struct StarSettings {
  int ranks = 1;
  std::string address;  ///< of this host, as the others reach it
  proto::Token token;
  std::chrono::nanoseconds start_patience{};  ///< for ranks to come
  std::chrono::nanoseconds deadline{};        ///< silence, or an answer that overdue, loses a rank
  /// Brings ranks that do not come by themselves; null: all do.
  std::function<void(const std::function<void(Arrival)>&)> bring = {};
  const std::atomic<bool>* stop = nullptr;  ///< ends the wait for ranks; null: nothing does. Borrowed
  int fanout = 0;  ///< ranks that hang on each other one; 0: all hang on rank 0, up to kStarMost
};

/// Rank 0's side of the channels to all ranks, itself included, directly or by a tree. A rank that is
/// lost is said once and asked for nothing any more; those that hung on it come to rank 0 itself.
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
  /// Goes before what the ranks say of their leaves and pods; hosts by their full or short name.
  void set_leaves(const cluster::Leaves& leaves, const cluster::Pods& pods);
  bool there(int rank) const { return members_[static_cast<std::size_t>(rank)].here; }
  /// Whether a signal came.
  bool stopped() const { return settings_.stop != nullptr && settings_.stop->load(); }
  /// The rank through which rank 0 reaches `rank`: itself without a tree.
  int top_of(int rank) const;
  /// So many servers for each device of each rank, at least one: for runs that come into it at once.
  void open_slots(const std::vector<std::vector<int>>& counts);
  /// Counters of errors of each rank's devices.
  std::map<int, Counters> counters();
  /// Measures as each rank is told; what comes back, by rank. Whoever has not answered
  /// when `expected` and the deadline are over is lost.
  std::map<int, Rates> measure(const std::map<int, Measure>& orders, std::chrono::nanoseconds expected);
  /// Whether each can be in a collective, by rank; and all in one. Losses as in measure().
  std::map<int, CollectiveReady> ask(const std::map<int, AskCollective>& orders);
  std::map<int, Rates> measure(const std::map<int, Collective>& orders);

 private:
  using Take = std::function<bool(int, const ClusterMessage&)>;

  Member& at(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  const Member& at(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  void start_own(const Card& own);
  void gather();
  void say_missing() const;
  bool admit(Arrival arrival);
  void readmit();
  void build_rank_tree();
  void tell_places(const std::vector<int>& order, std::vector<proto::Channel>& leaving);
  void open_devices();
  void lose(int rank, const std::string& why);
  bool send(int rank, proto::Cluster message);
  std::vector<int> below(int rank) const;
  /// To all of `orders`; who answers within `patience`, if any is to.
  std::set<int> post(const std::map<int, std::string>& orders, std::chrono::nanoseconds patience);
  /// Hands each message of `waiting` ranks to `take` until all have said one, or are lost.
  void collect(std::set<int> waiting, std::chrono::nanoseconds patience, const Take& take);
  /// The answers of those that are there, by rank; who does not answer what `fits` is lost.
  template <typename Answer, typename Order>
  std::map<int, Answer> answers_to(const std::map<int, Order>& orders, std::chrono::nanoseconds patience,
                                   const std::function<bool(int, const Answer&)>& fits);
  void hear(int top, std::set<int>& waiting, const Take& take);
  void hear_one(int rank, std::string_view text, std::set<int>& waiting, const Take& take);
  std::optional<proto::Cluster> look(int rank);
  std::vector<int> wait_readable();
  void wait_for_orphans();

  StarSettings settings_;
  std::jthread own_;  ///< of rank 0; ends when its channel, in members_, is closed
  std::vector<Member> members_;
  std::vector<std::vector<int>> children_;  ///< of each rank in the tree; none without
  std::set<int> orphans_;                   ///< here, but what they hung on is lost
  std::size_t losses_ = 0;
  std::chrono::steady_clock::time_point next_look_;  ///< at all, for silence
  Gate gate_;
};

/// Devices of each rank: those of one host share its devices out (rank i of n takes i, i + n, ...).
std::vector<std::vector<std::string>> share_devices(const std::vector<Member>& members);

}  // namespace gdrperf::app
