#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "gdrperf/cluster/fabric.h"

namespace gdrperf::cluster {

/// Parts that can be slow, coarse first.
enum class Part {
  kRail,
  kLeafRail,  ///< a leaf switch, or what of it serves one rail
  kUplink,    ///< the same, only for what leaves the leaf
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

/// A part that is slower than the others of its kind. IDs that don't apply are -1.
struct Suspect {
  Part part = Part::kNic;
  int rail = -1;
  int leaf = -1;
  int node = -1;
  int nic = -1;
  int peer = -1;  ///< NIC; of a pair
  Way way = Way::kBoth;
  double shift = 0;   ///< of the rate's logarithm, against the others
  double sigmas = 0;  ///< the same in robust standard deviations of the others
  std::size_t samples = 0;
  Verdict verdict = Verdict::kSuspect;
  double retest_shift = 0;
  std::size_t retests = 0;
};

/// One way of one NIC: its shift against the other NICs, and the 95 % rank
/// interval of that. Nothing is known with 0 samples.
struct NicEffect {
  float shift = 0;
  float low = 0;
  float high = 0;
  std::uint32_t samples = 0;
};

struct JudgeOptions {
  double suspect_sigmas = 5;
  double suspect_share = 0.03;  ///< slower than the others by this share at least
  int retests = 9;              ///< links per suspect, in the first stage
  int most_pairs = 32;          ///< slowest single pairs that are retested
  int least_partners = 3;       ///< a NIC that met fewer is not judged
  double must_see = 0.15;       ///< where a NIC that is slower by this share would not be suspected, nothing is fine
  std::uint64_t seed = 1;       ///< of the choice of partners
};

struct Judgement {
  double typical_gbytes = 0;          ///< median of all rates
  std::vector<NicEffect> sends;       ///< by NIC
  std::vector<NicEffect> receives;
  double nic_sigma = 0;               ///< robust standard deviation of NICs, of the logarithm
  double pair_sigma = 0;              ///< of single measurements around what their NICs explain
  double slow_share = 0;              ///< of measurements far below what their NICs explain
  std::size_t judged = 0;             ///< NICs with partners enough
  std::vector<Suspect> suspects;      ///< coarse first, then slowest first
  std::vector<double> rail_base = {}; ///< of the logarithm, by rail
  double sends_center = 0;            ///< what decide() compares with
  double receives_center = 0;
  double pair_center = 0;
};

/// Finds what is slow: log rate = rail + sends(a) + receives(b) + scatter. Parts
/// are judged by the upper quartile of their measurements: collisions in the
/// fabric slow some of a NIC's measurements, a slow NIC slows all of its. What
/// a coarse part explains is taken out before finer ones are judged. Time and
/// memory grow with the samples.
Judgement judge(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options);

/// By which share a NIC has to be slow to be suspected among NICs that scatter as these.
double least_visible(const Judgement& judgement, const JudgeOptions& options);

/// Links that decide about the suspects without a verdict: with partners under no suspicion, those not met
/// in `samples` or `retests` first; single pairs again and again.
std::vector<Link> retest_links(const Fabric& fabric, const Judgement& judgement,
                               std::span<const Sample> samples, std::span<const Sample> retests,
                               const JudgeOptions& options);

enum class Stage {
  kMore,  ///< whoever is too close to call stays a suspect
  kLast,  ///< and is cleared here
};

/// Verdicts of the suspects without one, by `retests` on retest_links(): slow or cleared by three standard
/// errors of the retests' quartile. What may be twice as slow as the limit by then is undecided, and what was surely
/// so slow before the retests say otherwise: something changed meanwhile.
void decide(const Fabric& fabric, std::span<const Sample> retests, const JudgeOptions& options, Stage stage,
            Judgement& judgement);

/// Measures both directions of links and appends what comes of it.
using MeasureLinks = std::function<void(std::span<const Link>, std::vector<Sample>&)>;

/// Retests until each suspect has its verdict: three stages, each of twice as many links for those that
/// are too close to call.
void settle(const Fabric& fabric, std::span<const Sample> samples, const JudgeOptions& options,
            const MeasureLinks& measure, std::vector<Sample>& retests, Judgement& judgement);

}  // namespace gdrperf::cluster
