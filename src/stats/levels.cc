#include "gdrperf/stats/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gdrperf/stats/autocorrelation.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

constexpr std::size_t kShortestLevel = 2;
/// A level lasts a share of the run: less is a hiccup.
constexpr std::size_t kMostLevels = 25;
/// And what ends again a larger one: a shorter stretch is found in the mean.
constexpr std::size_t kMostBetween = 10;
/// Standard errors between neighbours: of many places at which a change is looked for, one in a thousand series has one
/// by chance.
constexpr double kErrorsApart = 6;

/// Each value replaced by the median of itself and its neighbours: a single outlier goes, two alike stay.
std::vector<double> without_outliers(std::span<const double> values) {
  std::vector<double> result(values.begin(), values.end());
  if (values.size() < 3) return result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = std::clamp<std::size_t>(i, 1, values.size() - 2);
    const double a = values[at - 1];
    const double b = values[at];
    const double c = values[at + 1];
    result[i] = std::max(std::min(a, b), std::min(std::max(a, b), c));
  }
  return result;
}

class PrefixSums {
 public:
  explicit PrefixSums(std::span<const double> values) : sums_(values.size() + 1) {
    for (std::size_t i = 0; i < values.size(); ++i) sums_[i + 1] = sums_[i] + values[i];
  }
  double mean(std::size_t first, std::size_t last) const {
    return (sums_[last] - sums_[first]) / static_cast<double>(last - first);
  }

 private:
  std::vector<double> sums_;
};

struct Cut {
  std::size_t at = 0;
  double gain = 0;  ///< squared deviations that it explains
};

/// Fewest values of a level: between two others one more, of which it shares the first and the last.
struct Shortest {
  std::size_t at_end;
  std::size_t between;
};

Shortest shortest_of(std::size_t n) {
  return {std::max(kShortestLevel, n / kMostLevels), std::max(kShortestLevel + 1, n / kMostBetween)};
}

Cut best_cut(const PrefixSums& sums, std::size_t first, std::size_t last, std::size_t n) {
  Cut best;
  const Shortest shortest = shortest_of(n);
  const std::size_t left_least = first == 0 ? shortest.at_end : shortest.between;
  const std::size_t right_least = last == n ? shortest.at_end : shortest.between;
  for (std::size_t at = first + left_least; at + right_least <= last; ++at) {
    const double left = static_cast<double>(at - first);
    const double right = static_cast<double>(last - at);
    const double apart = sums.mean(first, at) - sums.mean(at, last);
    const double gain = apart * apart * left * right / (left + right);
    if (gain > best.gain) best = {at, gain};
  }
  return best;
}

/// Cuts that explain most, one after another, and each moved once between its neighbours.
std::vector<std::size_t> likeliest_cuts(const PrefixSums& sums, std::size_t n) {
  std::vector<std::size_t> borders{0, n};
  const std::size_t most_cuts = std::clamp<std::size_t>(n / 10, 2, 7);  // more changes are no levels
  while (borders.size() < most_cuts + 2) {
    Cut best;
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      const Cut cut = best_cut(sums, borders[i], borders[i + 1], n);
      if (cut.gain > best.gain) best = cut;
    }
    if (best.gain <= 0) break;
    borders.insert(std::upper_bound(borders.begin(), borders.end(), best.at), best.at);
  }
  for (std::size_t i = 1; i + 1 < borders.size(); ++i) {
    const Cut cut = best_cut(sums, borders[i - 1], borders[i + 1], n);
    if (cut.gain > 0) borders[i] = cut.at;
  }
  return borders;
}

/// Noise about the levels between `borders`.
struct Noise {
  double deviation;
  double correlation;  ///< of neighbours
};

Noise noise_of(std::span<const double> values, const PrefixSums& sums, const std::vector<std::size_t>& borders) {
  std::vector<double> rest;
  std::vector<double> distances;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const double level = sums.mean(borders[i], borders[i + 1]);
    for (std::size_t at = borders[i]; at < borders[i + 1]; ++at) {
      rest.push_back(values[at] - level);
      distances.push_back(std::abs(values[at] - level));
    }
  }
  // Each level and its place is fitted to the noise, too.
  const double fitted = 2 * static_cast<double>(borders.size() - 2);
  const double n = static_cast<double>(values.size());
  const double deviation = 1.4826 * median(distances) * std::sqrt(n / (n - fitted));
  const double reach = 4 * deviation;
  for (double& value : rest) value = std::clamp(value, -reach, reach);
  return {deviation, correlation_of_neighbours(rest)};
}

/// Variance of the mean of `count` values.
double variance_of_mean(const Noise& noise, std::size_t count) {
  const double n = static_cast<double>(count);
  const double r = noise.correlation;
  const double inflation = (1 + r) / (1 - r) - 2 * r * (1 - std::pow(r, n)) / (n * (1 - r) * (1 - r));
  return noise.deviation * noise.deviation * inflation / n;
}

/// Distance of neighbours relative to what they have to have; above 1: they are two levels.
double apart(std::span<const double> values, const PrefixSums& sums, const Noise& noise, std::size_t first,
             std::size_t at, std::size_t last, double least) {
  // A few outliers move the mean, and values that take turns the median: levels have both apart.
  const double medians = std::abs(median(values.subspan(first, at - first)) - median(values.subspan(at, last - at)));
  const double distance = std::min(medians, std::abs(sums.mean(first, at) - sums.mean(at, last)));
  const double error = std::sqrt(variance_of_mean(noise, at - first) + variance_of_mean(noise, last - at));
  const double needed = std::max(least, kErrorsApart * error);
  return distance > 0 ? distance / needed : 0;
}

}  // namespace

std::vector<Level> find_levels(std::span<const double> values, double least) {
  const std::size_t n = values.size();
  if (n == 0) return {};
  const std::vector<double> tamed = without_outliers(values);
  const PrefixSums sums(tamed);
  const double needed = least * std::abs(median(values));
  std::vector<std::size_t> borders = likeliest_cuts(sums, n);
  while (borders.size() > 2) {
    const Noise noise = noise_of(values, sums, borders);
    std::size_t weakest = 0;
    double nearest = 1;
    for (std::size_t i = 1; i + 1 < borders.size(); ++i) {
      const double distance = apart(values, sums, noise, borders[i - 1], borders[i], borders[i + 1], needed);
      if (distance < nearest) nearest = distance, weakest = i;
    }
    if (weakest == 0) break;
    borders.erase(borders.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
  std::vector<Level> levels;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const std::size_t count = borders[i + 1] - borders[i];
    levels.push_back({borders[i], count, median(values.subspan(borders[i], count))});
  }
  return levels;
}

double growth_to_one_level(std::span<const Level> levels, std::size_t count) {
  double growth = 1;
  const auto longest = std::max_element(levels.begin(), levels.end(),
                                        [](const Level& a, const Level& b) { return a.count < b.count; });
  for (auto level = levels.begin(); level != levels.end(); ++level) {
    if (level == longest) continue;
    const auto most = static_cast<double>(level == levels.begin() ? kMostLevels : kMostBetween);
    growth = std::max(growth, most * static_cast<double>(level->count) / static_cast<double>(count));
  }
  return growth;
}

namespace {

/// How long a beginning keeps its level before it goes to that behind it in a straight line, in values: the
/// trapezoid nearest to the values.
struct Trapezoid {
  double flat = 0;
  double end = 0;
  double height = 0;
  double explains = 0;  ///< of the squares
};

Trapezoid nearest_trapezoid(std::span<const double> gaps) {
  const std::size_t n = gaps.size();
  Trapezoid best;
  double best_gain = 0;
  double total = 0;
  for (const double gap : gaps) total += gap * gap;
  for (std::size_t end = 1; end <= n; ++end) {
    for (std::size_t flat = 0; flat <= end; ++flat) {
      double products = 0;
      double squares = 0;
      for (std::size_t i = 0; i < end; ++i) {
        const double at = static_cast<double>(i) + 0.5;
        const double slope = static_cast<double>(end - flat);
        const double shape = at <= static_cast<double>(flat) ? 1 : (static_cast<double>(end) - at) / slope;
        products += shape * gaps[i];
        squares += shape * shape;
      }
      const double gain = products * products / squares;
      if (gain <= best_gain * (1 + 1e-9)) continue;
      best_gain = gain;
      best = {static_cast<double>(flat), static_cast<double>(end), products / squares, gain / total};
    }
  }
  return best;
}

/// Whether the first `cut` values approach the level behind them, instead of keeping one of their own for most of the
/// time.
bool is_ramp(std::span<const double> values, std::size_t cut, Better better) {
  constexpr std::size_t kMostPoints = 48;
  constexpr double kExplains = 0.75;
  const double level = median(values.subspan(cut));
  const std::size_t group = 1 + cut / kMostPoints;
  const std::vector<double> tamed = without_outliers(values);
  std::vector<double> gaps;
  for (std::size_t i = 0; i + group <= std::min(values.size(), cut + cut / 4 + 2); i += group) {
    gaps.push_back(mean(std::span(tamed).subspan(i, group)) - level);
  }
  const Trapezoid found = nearest_trapezoid(gaps);
  if (found.explains < kExplains) return false;
  if (found.flat < found.end / 2) return true;
  // What is better at first is no warm-up, so short as it may be; a slow beginning of two batches is.
  const bool better_at_first = (found.height > 0) == (better == Better::kHigher);
  const double share = static_cast<double>(values.size()) / kMostLevels;
  const double shortest = better_at_first ? static_cast<double>(kShortestLevel) : std::max(3.0, share);
  return found.flat * static_cast<double>(group) < shortest;
}

/// Whether the first `cut` values end with a level of their own. A ramp ends near the level behind it.
bool ends_with_level(std::span<const double> values, std::size_t cut, double least) {
  const std::size_t group = 1 + std::min<std::size_t>(cut / 4, 4);  // warmup_cut() cuts between groups of values
  const std::size_t part = std::max<std::size_t>(3, values.size() / (2 * kMostLevels));
  if (cut < group + 2 * part) return false;
  const double level = median(values.subspan(cut));
  const double last = median(values.subspan(cut - group - part, part)) - level;
  const double before = median(values.subspan(cut - group - 2 * part, part)) - level;
  constexpr double kFlat = 0.85;
  return std::abs(last) >= least * std::abs(level) && last / before >= kFlat && before / last >= kFlat;
}

}  // namespace

Beginning find_beginning(std::span<const double> values, double least, Better better) {
  Beginning found;
  found.warmup = warmup_cut(values);
  const std::vector<Level> all = find_levels(values, least);
  if (all.size() > 1) {
    // What is left of a level behind the cut may be too short to be one.
    const std::size_t first = all.front().count;
    const bool cut_change = found.warmup > 0 && first < found.warmup + shortest_of(values.size()).between;
    const std::size_t rest = all.back().first;
    if (rest <= values.size() / 2 && is_ramp(values, rest, better) && !ends_with_level(values, rest, least)) {
      found.warmup = std::max(found.warmup, rest);  // the end of the ramp may pass for levels
    } else if (cut_change && ends_with_level(values, found.warmup, least)) {
      found.warmup = warmup_cut(values.first(found.warmup));
    } else if (cut_change && !is_ramp(values, found.warmup, better)) {
      found.warmup = warmup_cut(values.first(first));
    }
  }
  found.levels = find_levels(values.subspan(found.warmup), least);
  for (Level& level : found.levels) level.first += found.warmup;
  return found;
}

}  // namespace gdrperf::stats
