#include <algorithm>
#include <cmath>

#include "cluster/judge/coarse.h"
#include "cluster/judge/robust.h"
#include "gdrperf/stats/shift.h"

namespace gdrperf::cluster {
namespace {

// Beyond so many standard errors of its quartile a moment differs from the others.
constexpr double kMomentErrors = 4;

// Of few values the larger one: with one slow NIC in each moment of two links, that is the healthy one.
float upper_quartile(std::span<float> values) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(std::ceil(kUpperQuartile * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// NICs, by number, whose effect is like those of most.
std::vector<bool> ordinary_nics(const std::vector<NicEffect>& effects, const JudgeOptions& options) {
  std::vector<float> known;
  for (const NicEffect& effect : effects) {
    if (effect.samples > 0) known.push_back(effect.shift);
  }
  const double sigma = robust_center(std::move(known)).sigma;
  std::vector<bool> ordinary;
  for (const NicEffect& effect : effects) ordinary.push_back(!is_suspect(effect.shift, sigma, options));
  return ordinary;
}

// `left` of measurements between ordinary NICs. One that is slow at times, and so at most of its few measurements, is
// taken to be slow, and its good ones are far above that.
std::vector<float> of_ordinary_nics(const Residuals& residuals, const JudgeOptions& options,
                                    const Judgement& judgement, const std::vector<float>& left) {
  if (judgement.sends.empty()) return left;
  const std::vector<bool> sends = ordinary_nics(judgement.sends, options);
  const std::vector<bool> receives = ordinary_nics(judgement.receives, options);
  std::vector<float> ordinary;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (sends[residuals.samples[i].from] && receives[residuals.samples[i].to]) ordinary.push_back(left[i]);
  }
  return 2 * ordinary.size() < left.size() ? left : ordinary;
}

}  // namespace

float unexplained(const Residuals& residuals, std::size_t sample, const Judgement& judgement) {
  const Sample& one = residuals.samples[sample];
  const bool fitted = !judgement.sends.empty();
  return residuals.left[sample] - (fitted ? judgement.sends[one.from].shift + judgement.receives[one.to].shift : 0.0F);
}

void take_out_moments(Residuals& residuals, Judgement& judgement) {
  std::uint32_t last = 0;
  for (const Sample& sample : residuals.samples) last = std::max(last, sample.moment);
  if (last == 0) return;
  Grouped values(last + 1);
  for (const Sample& sample : residuals.samples) values.count(sample.moment);
  values.layout();
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) {
    values.add(residuals.samples[i].moment, unexplained(residuals, i, judgement));
  }
  std::vector<float> effects(last + 1, 0);
  std::vector<float> known;
  std::vector<float> within;
  for (std::size_t moment = 0; moment <= last; ++moment) {
    if (values.of(moment).empty()) continue;
    effects[moment] = upper_quartile(values.of(moment));
    known.push_back(effects[moment]);
    for (const float value : values.of(moment)) within.push_back(value - effects[moment]);
  }
  const double center = robust_center(std::move(known)).median;
  const double sigma = std::max(robust_center(std::move(within)).sigma, kLeastSigma);
  bool differ = false;
  for (std::size_t moment = 0; moment <= last; ++moment) {
    const auto count = static_cast<double>(values.of(moment).size());
    if (count == 0) continue;
    effects[moment] -= static_cast<float>(center);
    differ = differ || std::fabs(effects[moment]) > kMomentErrors * kErrorOfQuartile * sigma / std::sqrt(count);
  }
  if (!differ) return;
  judgement.moments.resize(last + 1, 0);
  for (std::size_t moment = 0; moment <= last; ++moment) judgement.moments[moment] += effects[moment];
  for (std::size_t i = 0; i < residuals.samples.size(); ++i) residuals.left[i] -= effects[residuals.samples[i].moment];
}

// The sigma is of what is not far below, or collisions would hide themselves: they lower the sigma's upper half least.
void measure_scatter(const Residuals& residuals, const JudgeOptions& options, Judgement& judgement) {
  constexpr double kFarSigmas = 5;
  constexpr double kHigh = 0.95;
  constexpr double kHighOfNormal = 1.645 - 0.674;
  std::vector<float> left(residuals.samples.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = unexplained(residuals, i, judgement);
  if (left.empty()) return;
  std::vector<float> ordinary = of_ordinary_nics(residuals, options, judgement, left);
  const double high = quantile(ordinary, kHigh);
  const double top = quantile(ordinary, kUpperQuartile);
  const double sigma = std::max(stats::judging_scatter((high - top) / kHighOfNormal, judgement.step), kLeastSigma);
  const double limit = top + std::min(std::log(1 - options.suspect_share), -kFarSigmas * sigma);
  const auto first_far = std::partition(left.begin(), left.end(), [&](float value) { return value >= limit; });
  judgement.slow_share = static_cast<double>(left.end() - first_far) / static_cast<double>(left.size());
  std::vector<float> all = left;
  left.erase(first_far, left.end());
  // Each NIC and each moment that was fitted takes some of the scatter with it.
  const auto count = static_cast<double>(residuals.samples.size());
  const double fitted =
      2.0 * static_cast<double>(judgement.sends.size()) + static_cast<double>(judgement.moments.size());
  const double hidden = std::sqrt(count / std::max(count - fitted, count / 4));
  const Center center = robust_center(std::move(left));
  judgement.pair_center = center.median;
  judgement.pair_sigma = center.sigma * hidden;
  judgement.far_below = limit - center.median;
  const auto below = std::count_if(
      all.begin(), all.end(), [&](float value) { return value - center.median < std::log(1 - options.suspect_share); });
  judgement.below_share = static_cast<double>(below) / count;
}

double log_parts(const Judgement& judgement) {
  return std::log(2.0 * static_cast<double>(std::max<std::size_t>(judgement.sends.size(), 1)));
}

}  // namespace gdrperf::cluster
