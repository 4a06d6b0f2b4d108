#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/schedule.h"

namespace gdrperf::cluster {

/// Parts that can be slow, coarse first.
enum class Part {
  kRail,
  kLeafRail,  ///< a leaf switch, or what of it serves one rail
  kPodUplink, ///< of a pod, for what leaves it
  kUplink,    ///< of a leaf, for what leaves it
  kPath,      ///< between two pods, or two leaves where no pods are known: a link of a dragonfly, say
  kNode,
  kNic,
  kPair,
};
std::string_view to_string(Part part);

/// Direction of the flows that a part slows.
enum class Way { kBoth, kSends, kReceives };
std::string_view to_string(Way way);

enum class Verdict {
  kSuspect,    ///< not retested
  kSlow,       ///< retests agree
  kCleared,    ///< retests don't
  kUndecided,  ///< too few retests, too much scatter, or slow at first and not in the retests
};
std::string_view to_string(Verdict verdict);

/// Whether a part slows each of its measurements, or more of them than others' parts do.
enum class When { kAlways, kAtTimes };
std::string_view to_string(When when);

/// A part that is slower than the others of its kind. IDs that don't apply are -1.
struct Suspect {
  Part part = Part::kNic;
  int rail = -1;
  int leaf = -1;
  int node = -1;
  int nic = -1;
  int peer = -1;  ///< NIC; of a pair
  int pod = -1;
  int other = -1;  ///< of a path: the other pod, or leaf
  Way way = Way::kBoth;
  double shift = 0;   ///< of the rate's logarithm, against the others
  double sigmas = 0;  ///< the same in robust standard deviations of the others
  std::size_t samples = 0;
  Verdict verdict = Verdict::kSuspect;
  double retest_shift = 0;
  std::size_t retests = 0;
  When when = When::kAlways;
  double bad_share = 0;     ///< kAtTimes: of its measurements, those far below what its NICs do else
  double others_share = 0;  ///< the same of all others
  double retest_bad_share = 0;
};

/// One way of one NIC: its shift against the other NICs, and the 95 % rank
/// interval of that. Nothing is known with 0 samples.
struct NicEffect {
  float shift = 0;
  float low = 0;
  float high = 0;
  std::uint32_t samples = 0;
};

/// Measurements, and how many of them were far below what their NICs do otherwise.
struct Tally {
  std::size_t bad = 0;
  std::size_t all = 0;
  void add(bool is_bad) {
    bad += std::size_t{is_bad};
    ++all;
  }
};

struct JudgeOptions {
  double suspect_sigmas = 5;
  double suspect_share = 0.03;  ///< slower than the others by this share at least
  int retests = 9;              ///< links per suspect, in the first stage
  int most_pairs = 32;          ///< slowest single pairs that are retested
  int least_partners = 3;       ///< a NIC that met fewer is not judged
  double must_see = 0.15;       ///< where a NIC that is slower by this share would not be suspected, nothing is judged
  std::uint64_t seed = 1;       ///< of the choice of partners
};

struct Judgement {
  double typical_gbytes = 0;          ///< median of all rates
  std::vector<NicEffect> sends;       ///< by NIC
  std::vector<NicEffect> receives;
  double nic_sigma = 0;               ///< robust standard deviation of NICs, of the logarithm
  double pair_sigma = 0;              ///< of single measurements around what their NICs explain
  double slow_share = 0;              ///< of measurements far below what their NICs explain
  double step = 0;                    ///< of the logarithm, between neighbouring values; 0: values hardly repeat
  std::vector<Tally> bad_by_nic = {}; ///< measurements that it sent or received
  Tally bad_in_all = {};
  double far_below = 0;               ///< of the logarithm, around pair_center: what is below it is far below
  std::size_t judged = 0;             ///< NICs with partners enough
  std::vector<Suspect> suspects;      ///< coarse first, then slowest first
  std::vector<double> rail_base = {}; ///< of the logarithm, by rail
  std::vector<float> moments = {};    ///< effect of each moment on all rates, of the logarithm, around their median
  std::size_t controls = 0;           ///< measured beside retests
  std::size_t bad_controls = 0;       ///< of them, far below
  std::size_t slow_controls = 0;      ///< of them, slower than expected by suspect_share
  double below_share = 0;             ///< of the judged measurements, slower than expected by suspect_share
  double sends_center = 0;            ///< what decide() compares with
  double receives_center = 0;
  double pair_center = 0;
};

/// Finds what is slow: log rate = rail + moment + sends(a) + receives(b) + scatter. Parts are judged by the upper
/// quartile of their measurements: collisions in the fabric slow some of a NIC's measurements, a slow NIC slows all of
/// its. A NIC with many more slow measurements than the others is slow at times. What a coarse part explains is taken
/// out before finer ones are judged. Scatter is never taken for less than the step between neighbouring values. Time
/// and memory grow with the samples.
Judgement judge(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options);

/// By which share a NIC has to be slow to be suspected among NICs that scatter as these.
double least_visible(const Judgement& judgement, const JudgeOptions& options);

/// Whether a slow part would not be seen among NICs that scatter as these, or in steps of the clock as coarse as these.
bool is_blind(const Judgement& judgement, const JudgeOptions& options);

/// Measures links, all at once, `a` sending to `b`, and appends what comes of it.
using MeasureRound = std::function<void(const Round&, std::vector<Sample>&)>;

/// What retests are measured with.
struct Measurer {
  MeasureRound one_way;
  /// Nodes that are lost by now, by node; fewer than all: the others are there.
  std::function<std::vector<bool>()> gone = [] { return std::vector<bool>(); };
  bool both_ways = true;  ///< false where one direction stands for both
  /// Asked before each round of retests: whether there is no time for it.
  std::function<bool()> stopped = [] { return false; };
};

/// Rounds that decide about the suspects without a verdict: in each round one link of a suspect, of a group one for
/// each of its NICs, with partners under no suspicion, those not met in `samples` or `retests` first; single pairs
/// again and again. At least two nodes under no suspicion take no part, so that they can be controls: a suspect that
/// leaves fewer has no rounds, nor has one that is `gone` (by node, as Measurer::gone).
std::vector<Round> retest_rounds(const Fabric& fabric, const Judgement& judgement, std::span<const Sample> samples,
                                 std::span<const Sample> retests, const JudgeOptions& options,
                                 const std::vector<bool>& gone = {});

enum class Stage {
  kMore,  ///< whoever is too close to call stays a suspect
  kLast,  ///< and is cleared here
};

/// Verdicts of the suspects without one, by `retests` on retest_rounds(): slow or cleared by three standard errors of
/// the retests' quartile, where collisions as frequent as the others' do not explain it. What may be twice as slow as
/// the limit by then is undecided, and what was surely so slow before the retests say otherwise: something changed
/// meanwhile.
void decide(const Fabric& fabric, std::span<const Sample> retests, const JudgeOptions& options, Stage stage,
            Judgement& judgement);

/// Retests until each suspect has its verdict: three stages, each of twice as many rounds for those that are too close
/// to call. Links under no suspicion run beside each retest and tell what all of them share; a retest without such
/// controls is not made. Where is_blind(), all are undecided; where Measurer::stopped(), those without a verdict
/// are.
void settle(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options,
            const Measurer& measurer, std::vector<Sample>& retests, Judgement& judgement);

}  // namespace gdrperf::cluster
