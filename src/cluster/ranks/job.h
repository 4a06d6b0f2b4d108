#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/topo/expected.h"
#include "cluster/output/file.h"
#include "cluster/output/hops.h"
#include "cluster/ranks/gpus.h"
#include "cluster/wire/star.h"
#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::app {

/// Measurement of a pair, and the pairs of each round.
struct ClusterTest {
  std::uint64_t size_bytes = 1u << 20;  ///< that saturates
  std::uint64_t small_bytes = 8;        ///< measured besides, and latency at both sizes; 0: bandwidth alone
  std::chrono::nanoseconds duration = std::chrono::milliseconds(250);
  bool event = false;
  ClusterBuffer buffer = ClusterBuffer::kHost;
  cluster::ScheduleOptions schedule = {};
  cluster::JudgeOptions judge = {};
};

/// Location of a NIC of the fabric.
struct NicPlace {
  int rank = 0;
  std::size_t device = 0;  ///< index into the member's devices
};

/// A run between two NICs that failed though both ranks stayed.
struct FailedRun {
  int from = 0;
  int to = 0;
  std::string why;
};

/// Further series of each link, judged like bandwidth.
struct Series {
  std::string name;  ///< "small_bandwidth", "latency", "small_latency"
  std::uint64_t size_bytes = 0;
  bool latency = false;                  ///< samples are 1/us then: more is better
  std::vector<cluster::Sample> samples = {};
  std::vector<cluster::Sample> retests = {};
  cluster::Judgement judgement = {};
};
/// One direction of `latency` stands for both: a message and its answer are timed together.
std::vector<Series> further_series(const ClusterTest& test);
/// Runs of a round, one after another.
int runs_per_round(const ClusterTest& test);
/// Latency and small messages rest on the CPUs, too, and on how many switches are between: a part is slow from
/// here on.
cluster::JudgeOptions judge_options_for(const Series& series, const ClusterTest& test);

/// Inspection of a slow NIC, because rates between nodes do not tell it from its cable.
struct Inspection {
  int nic = 0;
  int other = -1;                ///< NIC under no suspicion; -1: none
  double loopback_gbytes = 0;    ///< of the NIC to itself; 0: could not be measured
  double other_gbytes = 0;       ///< of the other to itself
  bool has_counters = false;
  std::map<std::string, std::uint64_t> rose = {};  ///< counters of errors that rose meanwhile
};

/// Counters of losses of one NIC rose while those of most others did not, or by far less.
struct Losses {
  int nic = 0;
  std::map<std::string, std::uint64_t> rose = {};
  std::uint64_t sum = 0;
  std::uint64_t others = 0;  ///< median of the others' sums
};

/// A host that has not what --expect says.
struct Unexpected {
  int rank = 0;  ///< the first on that host
  std::string what;
};

/// Result of one step of a pattern (cluster/patterns.h): rates of its flows, the victim's apart.
struct PatternStep {
  std::string pattern;
  std::string label;
  std::size_t flows = 0;
  std::size_t failed = 0;
  double sum_gbytes = 0;
  double least_gbytes = 0;
  double median_gbytes = 0;
  double most_gbytes = 0;
  double victim_gbytes = 0;  ///< 0: none
  /// Rate of the median NIC, all of its flows together, against that of pairs; 0: not known.
  double share_of_pairs = 0;
  int slowest = -1;           ///< NIC that sends (an incast: receives) least in all
  double slowest_share = 0;   ///< its rate against that of pairs
};

/// Loads of all NICs that reach less than that share of pairs' rate are no scatter.
inline constexpr double kAsPairs = 0.8;

/// One collective of NCCL's, by the conventions of nccl-tests.
struct CollectiveStep {
  std::string label;    ///< "all_reduce 128 MiB"
  std::string library;  ///< "NCCL 2.21.5"; "" unknown
  std::uint64_t size_bytes = 0;
  std::size_t gpus = 0;
  std::size_t hosts = 0;
  double seconds = 0;     ///< of one, mean of all GPUs; 0: not measured
  double bus_gbytes = 0;  ///< bytes by time, times 2 (n - 1) / n
  double share_of_pairs = 0;  ///< of what each host's NICs carry in pairs; 0: not compared
  std::vector<std::string> failed = {};  ///< why, with the rank
};

struct ClusterResult {
  cluster::Fabric fabric;
  std::vector<NicPlace> places;        ///< by NIC
  std::vector<std::string> leaves;     ///< names, by leaf of the fabric
  std::vector<std::string> pods;       ///< the same of its pods
  std::vector<cluster::Sample> samples;
  std::vector<cluster::Sample> retests;
  std::vector<FailedRun> failed;
  cluster::Judgement judgement;
  std::vector<Series> more;
  std::vector<PatternStep> patterns;
  std::vector<CollectiveStep> collectives = {};
  std::vector<Inspection> inspections;  ///< of slow NICs, the slowest few
  std::vector<Losses> losses;           ///< the most first
  std::vector<Unexpected> unexpected = {};  ///< what hosts lack of --expect
  Hops hops = {};                       ///< as far as the wiring is known
  bool stopped = false;                 ///< by a signal, before all rounds and retests were done
  std::size_t rounds = 0;
  std::size_t rounds_done = 0;
  bool partial = true;  ///< rounds are missing, or the judgement
  double seconds = 0;   ///< all rounds and retests
  double start_seconds = 0;  ///< from rank 0's start to the first round
  double round_seconds = 0;  ///< rounds measured by this process
  std::size_t rounds_timed = 0;
};

/// Told after each round; the result is partial then. False ends the rounds: what is done is judged.
using RoundDone = std::function<bool(const ClusterResult&)>;

/// NICs whose counters of losses rose far more than the others', by the counters before and after, by rank.
std::vector<Losses> find_losses(const std::vector<NicPlace>& places, const std::map<int, Counters>& before,
                                const std::map<int, Counters>& after);

/// Switches between the NICs of a job.
Hops find_hops(const Star& star, const std::vector<NicPlace>& places, const cluster::Wiring& wiring);

/// What the hosts of the ranks that are there lack of what is expected of each.
std::vector<Unexpected> find_unexpected(const Star& star, const Expected& expected);

/// Measures all rounds over `star`, judges, and retests what is suspect. With `earlier`, a partial result of the
/// same ranks and the same test, its rounds are not measured again; throws usage_error when it is another's.
ClusterResult run_cluster(Star& star, const ClusterTest& test, const ClusterFile* earlier, const RoundDone& round_done);

}  // namespace gdrperf::app
