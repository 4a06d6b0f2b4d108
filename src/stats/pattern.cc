#include "gdrperf/stats/pattern.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gdrperf/stats/summary.h"

namespace gdrperf::stats {
namespace {

constexpr std::size_t kFewest = 12;
/// A model has to explain this share of the variance: a single step through
/// white noise explains about a third of 30 values.
constexpr double kExplains = 0.6;
/// The best split of normal values into two groups explains 0.64, of uniform ones 0.75.
constexpr double kTwoGroups = 0.85;
constexpr double kSmallerGroup = 0.1;
/// Levels in time explain this share of what two groups do, or the groups take turns.
constexpr double kInOrder = 0.9;
/// Correlation of the series with itself one period later, and the dip before it.
constexpr double kRepeats = 0.45;
constexpr double kDip = -0.1;

std::vector<double> pull_in_outliers(std::span<const double> values) {
  const double centre = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - centre));
  const double reach = 5 * 1.4826 * median(distances);
  std::vector<double> result(values.begin(), values.end());
  if (!(reach > 0)) return result;  // most values are equal: the others are the pattern
  for (double& value : result) value = std::clamp(value, centre - reach, centre + reach);
  return result;
}

/// Sums of values and squares before each place, so that any stretch's squared
/// deviations cost one step. Values are taken relative to their mean.
class Stretches {
 public:
  explicit Stretches(std::span<const double> values) {
    const double centre = mean(values);
    for (const double value : values) {
      const double x = value - centre;
      sums_.push_back(sums_.back() + x);
      squares_.push_back(squares_.back() + x * x);
    }
  }
  /// Of values[first..last).
  double deviations(std::size_t first, std::size_t last) const {
    const double sum = sums_[last] - sums_[first];
    return std::max(0.0, squares_[last] - squares_[first] - sum * sum / static_cast<double>(last - first));
  }
  std::size_t size() const { return sums_.size() - 1; }
  double all() const { return deviations(0, size()); }

 private:
  std::vector<double> sums_{0.0};
  std::vector<double> squares_{0.0};
};

struct Line {
  double explains;  ///< share of the variance
  double slope;     ///< per value
};

Line line(std::span<const double> values, double total) {
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  const double centre = mean(values);
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    products += x * (values[i] - centre);
    squares += x * x;
  }
  return {products * products / squares / total, products / squares};
}

struct Steps {
  double explains;
  std::size_t changes;
};

/// Cuts the series where that explains most, again and again, as long as a cut
/// explains an eighth of the variance by itself.
Steps steps(const Stretches& stretches) {
  constexpr double kWorthACut = 0.125;
  constexpr std::size_t kMostCuts = 3;  // more would follow a slope just as well
  const std::size_t shortest = std::max<std::size_t>(3, stretches.size() / 20);
  const double total = stretches.all();
  std::vector<std::size_t> borders{0, stretches.size()};
  double left = total;
  while (borders.size() - 2 < kMostCuts) {
    double best_gain = 0;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      const std::size_t first = borders[i];
      const std::size_t last = borders[i + 1];
      const double whole = stretches.deviations(first, last);
      for (std::size_t cut = first + shortest; cut + shortest <= last; ++cut) {
        const double gain = whole - stretches.deviations(first, cut) - stretches.deviations(cut, last);
        if (gain > best_gain) best_gain = gain, best = cut;
      }
    }
    if (best_gain < kWorthACut * total) break;
    left -= best_gain;
    borders.insert(std::upper_bound(borders.begin(), borders.end(), best), best);
  }
  return {1 - left / total, borders.size() - 2};
}

struct Groups {
  double explains = 0;
  double border = 0;
  double smaller = 0;  ///< share of the smaller group
};

/// The border between two groups of values that explains most.
Groups two_groups(std::span<const double> values, double total) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const Stretches stretches(sorted);
  const std::size_t n = sorted.size();
  Groups best;
  for (std::size_t cut = 1; cut < n; ++cut) {
    const double explains = 1 - (stretches.deviations(0, cut) + stretches.deviations(cut, n)) / total;
    if (explains <= best.explains) continue;
    best = {explains, (sorted[cut - 1] + sorted[cut]) / 2,
            static_cast<double>(std::min(cut, n - cut)) / static_cast<double>(n)};
  }
  return best;
}

/// The first lag at which the series resembles itself again after it has not;
/// 0 when there is none up to a third of it.
std::size_t period_of(std::span<const double> values, double total) {
  const double centre = mean(values);
  const auto correlation = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < values.size(); ++i) sum += (values[i] - centre) * (values[i - lag] - centre);
    return sum / total * static_cast<double>(values.size()) / static_cast<double>(values.size() - lag);
  };
  bool dipped = false;
  std::size_t best = 0;
  // Of white noise, too, some lag shows a likeness of up to three standard errors.
  double best_value = std::max(kRepeats, 3 / std::sqrt(static_cast<double>(values.size())));
  for (std::size_t lag = 1; lag <= values.size() / 3; ++lag) {
    const double value = correlation(lag);
    dipped = dipped || value < kDip;
    if (dipped && value > best_value) best_value = value, best = lag;
    if (best > 0 && value < 0) break;  // over the first hill
  }
  return best;
}

}  // namespace

std::string_view to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::kSteps: return "steps";
    case Pattern::kDrift: return "drift";
    case Pattern::kBimodal: return "bimodal";
    case Pattern::kPeriodic: return "periodic";
    case Pattern::kScatter: break;
  }
  return "scatter";
}

PatternFound find_pattern(std::span<const double> values) {
  PatternFound found;
  if (values.size() < kFewest) return found;
  const std::vector<double> tamed = pull_in_outliers(values);
  const Stretches stretches(tamed);
  const double total = stretches.all();
  if (!(total > 0)) return found;

  const Line drift = line(tamed, total);
  const Steps stepped = steps(stretches);
  const Groups groups = two_groups(tamed, total);
  const bool two = groups.explains >= kTwoGroups && groups.smaller >= kSmallerGroup;
  const std::size_t period = period_of(tamed, total);
  const auto drifts = [&] {
    const double centre = median(values);
    found.pattern = Pattern::kDrift;
    found.change = centre == 0 ? 0 : drift.slope * static_cast<double>(values.size() - 1) / std::abs(centre);
  };
  if (stepped.explains >= kExplains && stepped.explains > drift.explains + 0.03 &&
      (!two || stepped.explains >= kInOrder * groups.explains)) {
    found.pattern = Pattern::kSteps;
    found.changes = stepped.changes;
  } else if (drift.explains >= kExplains) {
    drifts();
  } else if (period > 0) {
    found.pattern = Pattern::kPeriodic;
    found.period = period;
  } else if (two) {
    found.pattern = Pattern::kBimodal;
    std::vector<double> low;
    std::vector<double> high;
    for (const double value : values) (value < groups.border ? low : high).push_back(value);
    found.low = median(low);
    found.high = median(high);
  } else if (drift.explains >= kExplains / 2 && drift.explains >= stepped.explains) {
    drifts();
  }
  return found;
}

}  // namespace gdrperf::stats
