#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/topology_file.h"

namespace gdrperf::app {

/// One way of one NIC as a document tells it: percent against the others, and its 95 % interval.
struct FileEffect {
  bool known = false;
  double shift_percent = 0;
  double low_percent = 0;
  double high_percent = 0;
};

struct FileNic {
  int rank = 0;
  std::string host;
  std::string device;
  int rail = 0;
  FileEffect sends;
  FileEffect receives;
};

struct FileSuspect {
  std::string part;     ///< "rail", "leaf", "pod uplink", "uplink", "path", "node", "nic", "pair"
  std::string verdict;  ///< "slow", "cleared", "undecided"
  int rank = -1;
  int nic = -1;
  int peer = -1;
  int rail = -1;
  std::string leaf;
  std::string pod;
  std::string other;  ///< of a path: the pod or leaf at its other side
  std::string way;
  std::string series = "bandwidth";
  std::string when = "always";
  double bad_share = 0;  ///< "at times": of its measurements
  double percent = 0;  ///< of the retests, where there are any
  int retests = 0;
};

/// Series measured besides bandwidth.
struct FileSeries {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::vector<cluster::Sample> measurements;
};

struct FileRank {
  int rank = 0;
  std::string host;
  std::string lost;  ///< "" when it stayed
  std::string node = "";  ///< as the scheduler names the host; "" as the host
};

/// A result of `gdrperf cluster` read back.
struct ClusterFile {
  std::string started;
  std::string verdict;
  bool partial = false;
  std::uint64_t size_bytes = 0;
  std::string buffer = "host";
  double duration_s = 0;
  std::uint64_t seed = 0;
  int matchings = 0;
  std::size_t rounds = 0;
  std::size_t rounds_done = 0;
  double typical_gbytes = 0;
  int runs_per_round = 2;
  double seconds_per_round = 0;  ///< 0: not known
  std::vector<FileRank> ranks;
  std::vector<FileNic> nics;
  std::vector<FileSuspect> suspects;
  std::vector<std::pair<int, std::string>> unexpected;  ///< rank, and what its host lacks of --expect
  std::vector<int> losing;  ///< NICs whose counters of losses rose
  std::map<int, std::string> failed;  ///< NICs none of whose runs worked, and why
  std::vector<cluster::Sample> measurements;
  std::vector<FileSeries> more;

  const FileRank* rank(int number) const;
};

/// Whether a text begins as a document of `gdrperf cluster` does.
bool is_cluster_document(std::string_view text);
/// Throws usage_error naming `path` for what is no such document; its measurements are read from the file beside it
/// where it names one.
ClusterFile parse_cluster(const std::string& text, const std::string& path);
/// parse_cluster() of a file's content.
ClusterFile read_cluster(const std::string& path);

/// The document at `path` as text, without its single measurements, in it or beside it. Throws usage_error for what is
/// none.
std::string without_measurements(const std::string& path);

/// Leaves of a file: JSON ({"leaf1": ["n1", "n2"]}), or those of its wiring (lldp.h). Throws usage_error.
cluster::Leaves parse_leaves(const std::string& text, const std::string& path);
/// Pods of such a file; in JSON: {"pod1": {"leaf1": ["n1", "n2"]}}.
cluster::Pods parse_leaf_pods(const std::string& text);

/// Measurements as 12 bytes each, little-endian: from, to (32 bits), GB/s (32-bit float).
std::string pack_measurements(const std::vector<cluster::Sample>& samples);

}  // namespace gdrperf::app
