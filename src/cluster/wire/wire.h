#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gdrperf/base/error.h"
#include "gdrperf/proto/channel.h"

namespace gdrperf::app {

/// One NIC of a rank, as it says: at first its name and GPU, the rest of those alone that it serves (Ports).
struct CardDevice {
  std::string name;
  std::string kind;
  std::string driver;
  std::string firmware;
  int mtu_bytes = 0;
  double rate_gbps = 0;
  std::string gid_type;  ///< of the GID that a run takes: "RoCE v2/IPv4"
  std::string pcie;      ///< link as it was trained: "16.0 GT/s x16"; "" on no bus
  int numa_node = -1;
  int port = 1;          ///< that is active
  std::string netdev;    ///< network interface; "" where it has none
  std::string gpu;           ///< nearest to it, as --buffer cuda:N takes it; "" none
  std::string gpu_relation;  ///< "PIX"
};

/// A rank's description, to rank 0.
struct Card {
  int rank = 0;
  int ranks = 1;
  std::string host;
  std::string host_id;  ///< of the running kernel (base/host.h)
  std::string node;     ///< as the scheduler names the host, where it does
  std::string leaf;     ///< switch that it hangs on; "" unknown
  std::string pod;      ///< of that switch; "" unknown
  std::string kernel;
  std::string gpu_driver;  ///< "" where there is none
  std::string version;  ///< of gdrperf
  bool devices_given = false;  ///< by --devices: not shared out among the ranks of a host
  std::vector<int> gpu_nodes;  ///< NUMA node of each GPU that has a driver
  std::string trouble;  ///< why this rank cannot measure; "" where it can
  int relay_port = 0;   ///< where others can hang on this rank; 0: they cannot
  std::vector<CardDevice> devices;
};

/// Client to a server that is to be a rank. It answers with its Card.
struct Invite {
  int rank = 0;
  int ranks = 0;
  double deadline_s = 10;
};

/// Rank 0 to a rank of a tree: these come to you, and what is for them and those below goes through you.
struct RelayChild {
  int rank = 0;
  std::vector<int> below;  ///< without itself
};
struct BecomeRelay {
  std::vector<RelayChild> children;
};
/// Rank 0 to a rank of a tree: hang on that one.
struct Attach {
  std::string host;
  int port = 0;
};
/// A rank to the one it hangs on, when all below it are there but for `missing`.
struct Joined {
  int rank = 0;
  std::vector<int> missing;
};
/// A relay to rank 0, in place of an answer of somebody below.
struct Lost {
  std::string why;
};

/// Rank 0 to a rank: serve these devices. The rank answers with Ports.
struct OpenDevices {
  std::vector<std::string> devices;
};
struct Ports {
  std::vector<int> ports;           ///< TCP, one server per device
  std::vector<CardDevice> devices;  ///< each once
};

/// Rank 0 to a rank: be the client of these runs, all at once. Answered with Rates.
struct ClusterRun {
  std::string host;
  int port = 0;
  std::string device;
  std::string peer_device;
  std::string buffer = "host";  ///< kind of memory, as --buffer takes it
  std::string peer_buffer = "host";
};
struct Measure {
  int id = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t duration_ns = 0;
  bool event = false;    ///< wait asleep
  bool latency = false;  ///< write_lat instead of write_bw
  std::vector<ClusterRun> runs;
};
struct ClusterRate {
  double gbytes = 0;
  double latency_us = 0;  ///< median, of one way
  std::string error;  ///< why there is none
};
struct Rates {
  int id = 0;
  std::vector<ClusterRate> rates;
};
/// Rank 0 to a rank: what do the counters of errors of these devices say? Answered with Counters.
struct ReadCounters {
  std::vector<std::string> devices;
};
struct Counters {
  std::vector<std::map<std::string, std::uint64_t>> devices;  ///< by name
};
/// Rank 0 to a rank: which GPUs of this maker can be in a collective? Answered with CollectiveReady.
struct AskCollective {
  std::string maker;    ///< "cuda", "rocm"
  bool new_id = false;  ///< and name a communicator, which all others then come to
};
struct CollectiveReady {
  std::vector<std::string> gpus;  ///< as --buffer takes them
  std::string version;            ///< of the library: "NCCL 2.21.5"; "" without
  std::string unique_id;          ///< ncclUniqueId in hexadecimal
  std::string why_not;            ///< "" where they can
};
/// Rank 0 to a rank: be in this all_reduce with these GPUs. Answered with Rates: bytes by time, by GPU.
struct CollectiveEnd {
  int rank = 0;  ///< in the collective
  std::string gpu;
};
/// More than this a rank refuses.
inline constexpr std::uint64_t kMostCollectiveBytes = std::uint64_t{4} << 30;
inline constexpr std::chrono::hours kLongestCollective{1};
struct Collective {
  int id = 0;
  std::string unique_id;
  int ranks = 0;  ///< of the collective: GPUs in all
  std::uint64_t size_bytes = 0;
  int timed = 0;  ///< rounds that count
  std::int64_t limit_ns = 0;  ///< for all of it
  std::vector<CollectiveEnd> ends;
};
/// Rank 0 to a rank: it is over.
struct End {};

using ClusterMessage = std::variant<Card, OpenDevices, Ports, Measure, Rates, End, BecomeRelay, Attach, Joined, Lost,
                                    ReadCounters, Counters, Invite, AskCollective, CollectiveReady, Collective>;

proto::Cluster encode_cluster(const ClusterMessage& message);
/// Its text alone, for a bundle (cluster/tree.h).
std::string encode_cluster_text(const ClusterMessage& message);
/// Throws peer_error with `peer` in front for what is none of them.
ClusterMessage decode_cluster(const proto::Cluster& message, const std::string& peer);
ClusterMessage decode_cluster_text(std::string_view text, const std::string& peer);

/// The next message as a T; throws peer_error as proto::expect().
template <typename T>
T expect_cluster(proto::Channel& channel, std::chrono::nanoseconds timeout) {
  auto message = decode_cluster(proto::expect<proto::Cluster>(channel, timeout), channel.peer());
  if (T* wanted = std::get_if<T>(&message)) return std::move(*wanted);
  throw peer_error(channel.peer() + ": sent another message than was due");
}

}  // namespace gdrperf::app
