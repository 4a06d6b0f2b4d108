#pragma once

#include <functional>
#include <span>
#include <vector>

#include "gdrperf/cluster/fabric.h"
#include "gdrperf/cluster/judge.h"

namespace gdrperf::cluster {

/// Share of a part's measurements that has to be slow before the part is: a quarter may
/// collide nowhere and still three quarters collide.
inline constexpr double kUpperQuartile = 0.75;

/// Residual of each sample's logarithm.
struct Residuals {
  std::span<const Sample> samples;
  std::vector<float> left;
};

/// The rails' own rates, taken out of `residuals`; a rail that is slower than
/// the others is a suspect.
void judge_rails(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals,
                 Judgement& judgement);

/// Groups of NICs: leaf x rail and its uplinks, where leaves are known, then nodes. What the
/// suspects among them explain is taken out of `residuals`.
void judge_groups(const Fabric& fabric, const JudgeOptions& options, Residuals& residuals,
                  Judgement& judgement);

/// Whether a part that lies `shift` from the others' center is suspect.
bool is_suspect(double shift, double sigma, const JudgeOptions& options);
/// Below which even a perfect model scatters.
inline constexpr double kLeastSigma = 1e-4;

}  // namespace gdrperf::cluster
