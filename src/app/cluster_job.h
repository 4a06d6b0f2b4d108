#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster_file.h"
#include "cluster_star.h"
#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::app {

/// How a pair is measured, and who meets whom.
struct ClusterTest {
  std::uint64_t size_bytes = 1u << 20;
  std::chrono::nanoseconds duration = std::chrono::milliseconds(250);
  bool event = false;
  cluster::ScheduleOptions schedule;
  cluster::JudgeOptions judge;
};

/// Where a NIC of the fabric is to be found.
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

struct ClusterResult {
  cluster::Fabric fabric;
  std::vector<NicPlace> places;        ///< by NIC
  std::vector<std::string> leaves;     ///< names, by leaf of the fabric
  std::vector<cluster::Sample> samples;
  std::vector<cluster::Sample> retests;
  std::vector<FailedRun> failed;
  cluster::Judgement judgement;
  std::size_t rounds = 0;
  std::size_t rounds_done = 0;
  bool partial = true;  ///< rounds are missing, or the judgement
  double seconds = 0;   ///< all rounds and retests
};

/// Told after each round; the result is partial then.
using RoundDone = std::function<void(const ClusterResult&)>;

/// Measures all rounds over `star`, judges, and retests what is suspect. With `earlier`, a partial result of the
/// same ranks and the same test, its rounds are not measured again; throws usage_error when it is another's.
ClusterResult run_cluster(Star& star, const ClusterTest& test, const ClusterFile* earlier, const RoundDone& round_done);

}  // namespace gdrperf::app
