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

/// Standard error of an upper quartile: this times sigma / sqrt(n), for a normal distribution.
inline constexpr double kErrorOfQuartile = 1.36;

/// Residual of each sample's logarithm.
struct Residuals {
  std::span<const Sample> samples;
  std::vector<float> left;
};

/// Effects of moments, taken out of `residuals` and added to the judgement's, after what its NICs explain so far. Where
/// moments differ by no more than chance lets them, none.
void take_out_moments(Residuals& residuals, Judgement& judgement);

/// What residuals scatter by when NICs, as far as they are known, are taken out: center, sigma, and what is far below.
void measure_scatter(const Residuals& residuals, const JudgeOptions& options, Judgement& judgement);
/// What is left of a sample then.
float unexplained(const Residuals& residuals, std::size_t sample, const Judgement& judgement);

/// NICs, nodes and uplinks that have many more measurements far below than the others.
void judge_at_times(const Fabric& fabric, const JudgeOptions& options, const Residuals& residuals,
                    Judgement& judgement);

/// Share of rounds of two measurements in which one at least is bad.
double either_of_two(double share);

/// Chance, of all NICs of a run together, below which chance explains nothing.
inline constexpr double kUnlikely = 1e-3;
/// As many parts of the judged cluster may be unlucky: both ways of each NIC. Of the logarithm.
double log_parts(const Judgement& judgement);

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
