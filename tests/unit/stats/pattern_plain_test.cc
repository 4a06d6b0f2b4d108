#include "gdrperf/stats/pattern.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/summary.h"

// The same classification written a second time from the rules that pattern.h states, with nothing computed ahead.
namespace gdrperf::stats {
namespace {

using Row = std::vector<double>;

Row cut_out(const Row& values, std::size_t first, std::size_t last) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.begin() + static_cast<std::ptrdiff_t>(last)};
}

/// Squared deviations from the mean.
double squares_of(const Row& values) {
  double sum = 0;
  for (const double value : values) sum += (value - mean(values)) * (value - mean(values));
  return sum;
}

/// Five robust standard deviations at most from the median, unless most values are equal.
Row plainly_tamed(Row values) {
  const double centre = median(values);
  Row distances;
  for (const double value : values) distances.push_back(std::abs(value - centre));
  const double reach = 5 * 1.4826 * median(distances);
  if (reach == 0) return values;
  for (double& value : values) value = std::min(std::max(value, centre - reach), centre + reach);
  return values;
}

/// Slope of the least-squares line, per value.
double plain_slope(const Row& values) {
  double products = 0;
  double squares = 0;
  const double middle = 0.5 * static_cast<double>(values.size() - 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    products += (static_cast<double>(i) - middle) * (values[i] - mean(values));
    squares += std::pow(static_cast<double>(i) - middle, 2);
  }
  return products / squares;
}

double line_explains(const Row& values) {
  Row rest = values;
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= plain_slope(values) * static_cast<double>(i);
  return 1 - squares_of(rest) / squares_of(values);
}

struct PlainSteps {
  double explains = 0;
  std::size_t changes = 0;
};

/// Up to three cuts, each where it explains most and an eighth of the whole at least. No part has fewer than three
/// values or a twentieth of all.
PlainSteps plain_steps(const Row& values) {
  const std::size_t shortest = std::max<std::size_t>(3, values.size() / 20);
  const double total = squares_of(values);
  std::vector<Row> parts{values};
  while (parts.size() < 4) {
    double most = 0;
    std::size_t which = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t cut = shortest; cut + shortest <= parts[i].size(); ++cut) {
        const double gain = squares_of(parts[i]) - squares_of(cut_out(parts[i], 0, cut)) -
                            squares_of(cut_out(parts[i], cut, parts[i].size()));
        if (gain > most * (1 + 1e-12)) most = gain, which = i, where = cut;
      }
    }
    if (most < total / 8) break;
    const Row whole = parts[which];
    parts[which] = cut_out(whole, 0, where);
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(which) + 1, cut_out(whole, where, whole.size()));
  }
  double left = 0;
  for (const Row& part : parts) left += squares_of(part);
  return {1 - left / total, parts.size() - 1};
}

/// Lower and upper values, parted where that explains most.
struct PlainGroups {
  double explains = 0;
  Row low, high;
};

PlainGroups plain_groups(Row values) {
  std::sort(values.begin(), values.end());
  PlainGroups best;
  for (std::size_t cut = 1; cut < values.size(); ++cut) {
    const Row low = cut_out(values, 0, cut);
    const Row high = cut_out(values, cut, values.size());
    const double explains = 1 - (squares_of(low) + squares_of(high)) / squares_of(values);
    if (explains > best.explains) best = {explains, low, high};
  }
  return best;
}

/// Correlation with itself `lag` values later.
double correlation_at(const Row& values, std::size_t lag) {
  const double centre = mean(values);
  const double n = static_cast<double>(values.size());
  double sum = 0;
  for (std::size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - centre) * (values[i + lag] - centre);
  return sum / (n - static_cast<double>(lag)) / (squares_of(values) / n);
}

/// Lag up to a third of all at which the series is most like itself: after a dip below -0.1, and before it is unlike
/// itself once more. 0.45, or three standard errors, is asked for.
std::size_t plain_period(const Row& values) {
  double most = std::max(0.45, 3 / std::sqrt(static_cast<double>(values.size())));
  bool dipped = false;
  std::size_t period = 0;
  for (std::size_t lag = 1; 3 * lag <= values.size(); ++lag) {
    const double here = correlation_at(values, lag);
    if (period > 0 && here < 0) return period;
    if (here < -0.1) dipped = true;
    if (dipped && here > most) most = here, period = lag;
  }
  return period;
}

PatternFound plain_pattern(const Row& values) {
  if (values.size() < 12 || squares_of(values) == 0) return {};
  const Row tamed = plainly_tamed(values);
  const double line = line_explains(tamed);
  const PlainSteps steps = plain_steps(tamed);
  const PlainGroups groups = plain_groups(tamed);
  const std::size_t period = plain_period(tamed);
  const std::size_t smaller = std::min(groups.low.size(), groups.high.size());
  const bool two = groups.explains >= 0.85 && 10 * smaller >= values.size();
  PatternFound found;
  const bool in_order = !two || steps.explains >= 0.9 * groups.explains;
  if (steps.explains >= 0.6 && steps.explains > line + 0.03 && in_order) {
    found.pattern = Pattern::kSteps;
    found.changes = steps.changes;
  } else if (line >= 0.6 || (line >= 0.3 && line >= steps.explains && period == 0 && !two)) {
    found.pattern = Pattern::kDrift;
    const double centre = median(values);
    if (centre != 0) found.change = plain_slope(tamed) * static_cast<double>(values.size() - 1) / std::abs(centre);
  } else if (period > 0) {
    found.pattern = Pattern::kPeriodic;
    found.period = period;
  } else if (two) {
    Row sorted = values;
    std::sort(sorted.begin(), sorted.end());
    found.pattern = Pattern::kBimodal;
    found.low = median(cut_out(sorted, 0, groups.low.size()));
    found.high = median(cut_out(sorted, groups.low.size(), sorted.size()));
  }
  return found;
}

void expect_as_plain(const Row& values) {
  const PatternFound wanted = plain_pattern(values);
  const PatternFound found = find_pattern(values);
  const auto near = [](double value) { return std::abs(value) * 1e-9; };
  EXPECT_EQ(to_string(found.pattern), to_string(wanted.pattern)) << testing::PrintToString(values);
  EXPECT_EQ(found.period, wanted.period) << testing::PrintToString(values);
  EXPECT_EQ(found.changes, wanted.changes) << testing::PrintToString(values);
  EXPECT_NEAR(found.change, wanted.change, near(wanted.change)) << testing::PrintToString(values);
  EXPECT_NEAR(found.low, wanted.low, near(wanted.low)) << testing::PrintToString(values);
  EXPECT_NEAR(found.high, wanted.high, near(wanted.high)) << testing::PrintToString(values);
}

/// A little of each pattern under noise, with few digits, so that values are equal at times.
Row mixture(std::mt19937_64& random, std::size_t count) {
  const auto below = [&](std::uint64_t most) { return static_cast<double>(random() % most); };
  const double slope = random() % 3 == 0 ? below(9) / static_cast<double>(count) : 0;
  const double step = random() % 2 == 0 ? below(9) : 0;
  const double wave = random() % 3 == 0 ? below(9) : 0;
  const double coin = random() % 3 == 0 ? below(12) : 0;
  const std::uint64_t period = 2 + random() % (count / 3);
  const std::uint64_t coins = 2 + random() % 12;
  const std::uint64_t noise = 1 + random() % 5;
  std::uint64_t change = 2 + random() % count;
  double level = 0;
  Row values;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == change) level = step - level, change += 3 + random() % count;
    const double waves = i % period < (period + 1) / 2 ? wave : 0;
    const double coins_on_it = random() % coins == 0 ? coin : 0;
    values.push_back(std::round(slope * static_cast<double>(i) + level + waves + coins_on_it) + below(noise));
  }
  if (random() % 8 == 0) values[random() % count] = 200;
  return values;
}

// In any unit, and however far from zero.
TEST(PatternPlain, Mixtures) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 600; ++round) {
    Row values = mixture(random, 11 + random() % 30);
    const double middle = std::ldexp(1, round % 3 == 0 ? 40 : 5);
    for (double& value : values) value = std::ldexp(value + middle, round % 3 == 1 ? -70 : 0);
    expect_as_plain(values);
  }
}

TEST(PatternPlain, DriftIsAShareOfTheMedian) {
  Row values;
  for (int i = 0; i < 13; ++i) values.push_back(i - 6);
  EXPECT_EQ(find_pattern(values).pattern, Pattern::kDrift);
  EXPECT_EQ(find_pattern(values).change, 0) << "of a median of zero there is no share";
  for (double& value : values) value += 1;
  EXPECT_DOUBLE_EQ(find_pattern(values).change, 12);
  for (double& value : values) value -= 1 + 24;
  EXPECT_DOUBLE_EQ(find_pattern(values).change, 0.5) << "up is up below zero, too";
  for (double& value : values) value += 1e15;
  EXPECT_NEAR(find_pattern(values).change, 12e-15, 1e-19);
}

TEST(PatternPlain, StepsLastATwentiethOfAll) {
  for (const std::size_t count : {79u, 80u}) {
    Row values(count, 0.0);
    for (std::size_t i = count - 6; i < count; ++i) values[i] = i + 3 < count ? 8 : 18;
    expect_as_plain(values);
    EXPECT_EQ(find_pattern(values).changes, count == 79 ? 2u : 1u) << count;
  }
}

// Between the highest of the lower group and the lowest of the upper one; of two borders as good the lower one counts.
TEST(PatternPlain, WhereGroupsPart) {
  const PatternFound apart = find_pattern(Row{0, 24, 24, 10, 1, 15, 2, 24, 24, 3, 4, 24});
  EXPECT_EQ(apart.pattern, Pattern::kBimodal);
  EXPECT_EQ(apart.low, 2.5);
  EXPECT_EQ(apart.high, 24);
  const PatternFound even = find_pattern(Row{0, 20, 18, 2, 0, 18, 10, 2, 20, 20, 0, 2, 18});
  EXPECT_EQ(even.pattern, Pattern::kBimodal);
  EXPECT_EQ(even.low, 1);
  EXPECT_EQ(even.high, 18);
}

TEST(PatternPlain, AGroupHasATenthOfAll) {
  Row values(20, 5.0);
  values[3] = values[11] = 9;
  const PatternFound found = find_pattern(values);
  EXPECT_EQ(found.pattern, Pattern::kBimodal);
  EXPECT_EQ(found.low, 5);
  EXPECT_EQ(found.high, 9);
  values.push_back(5);
  EXPECT_EQ(find_pattern(values).pattern, Pattern::kScatter);
}

}  // namespace
}  // namespace gdrperf::stats
