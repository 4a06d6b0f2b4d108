#include "gdrperf/stats/steady.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

/// `batches` with everything beyond 3 robust standard deviations of the later
/// half moved to that distance. The spread is taken as at least 0.1 % of the
/// median: less is no warm-up worth cutting.
std::vector<double> tame_late_outliers(std::span<const double> batches) {
  const std::span<const double> later = batches.subspan(batches.size() / 2);
  const double centre = median(later);
  std::vector<double> distances;
  for (const double value : later) distances.push_back(std::abs(value - centre));
  constexpr double kSigmaPerMad = 1.4826;  // of a normal distribution
  const double reach = 3 * std::max(kSigmaPerMad * median(distances), 0.001 * std::abs(centre));
  std::vector<double> result;
  for (const double value : batches) {
    result.push_back(std::clamp(value, centre - reach, centre + reach));
  }
  return result;
}

std::vector<double> group_means(const std::vector<double>& values, std::size_t group) {
  std::vector<double> means;
  for (std::size_t i = 0; i + group <= values.size(); i += group) {
    means.push_back(mean(std::span(values).subspan(i, group)));
  }
  return means;
}

}  // namespace

std::size_t warmup_cut(std::span<const double> batches) {
  if (batches.size() < 4) return 0;
  const std::size_t group = std::clamp<std::size_t>(batches.size() / 20, 1, 5);
  const std::vector<double> means = group_means(tame_late_outliers(batches), group);
  // From the end to the front, so that each candidate costs one step (Welford).
  const std::size_t largest_cut = batches.size() / 2 / group;
  double running_mean = 0;
  double squares = 0;
  double best = std::numeric_limits<double>::infinity();
  std::size_t best_cut = 0;
  for (std::size_t left = 1; left <= means.size(); ++left) {
    const std::size_t cut = means.size() - left;
    const double count = static_cast<double>(left);
    const double delta = means[cut] - running_mean;
    running_mean += delta / count;
    squares += delta * (means[cut] - running_mean);
    const double score = squares / (count * count);
    if (cut <= largest_cut && score <= best) {
      best = score;
      best_cut = cut;
    }
  }
  return best_cut * group;
}

StopDecision stop_decision(const Summary& summary, std::size_t count, double precision, std::size_t min_batches) {
  StopDecision decision{false, std::numeric_limits<double>::infinity()};
  if (!summary.median_ci || !(summary.median > 0)) return decision;
  decision.relative_half_width =
      std::max(summary.median_ci->high - summary.median, summary.median - summary.median_ci->low) /
      summary.median;
  decision.tight = count >= min_batches && decision.relative_half_width <= precision;
  return decision;
}

StopDecision stop_decision(std::span<const double> batches, double precision,
                           std::size_t min_batches) {
  return stop_decision(summarize(batches), batches.size(), precision, min_batches);
}

}  // namespace gdrperf::stats
