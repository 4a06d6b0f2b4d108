#include "gdrperf/stats/levels.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "gdrperf/stats/autocorrelation.h"
#include "gdrperf/stats/steady.h"
#include "gdrperf/stats/summary.h"

// Levels and warm-up found a second time, with nothing computed ahead.
namespace gdrperf::stats {
namespace {

using Rates = std::vector<double>;

Rates slice(const Rates& values, std::size_t first, std::size_t last) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first), values.begin() + static_cast<std::ptrdiff_t>(last)};
}

double number(std::size_t count) { return static_cast<double>(count); }

/// The middle one of each three neighbours; the first and the last are as their neighbours.
Rates middle_of_three(const Rates& values) {
  Rates result = values;
  if (values.size() < 3) return result;
  for (std::size_t i = 1; i + 1 < values.size(); ++i) result[i] = median(slice(values, i - 1, i + 2));
  result.front() = result[1];
  result.back() = result[result.size() - 2];
  return result;
}

struct Division {
  std::size_t at = 0;
  double explains = 0;
};

/// Where to divide `first`..`last` of a series so that the means of both parts differ most, for their lengths. A level
/// has 2 values at least and 4 % of the series, or 3 and a tenth between others.
Division best_division(const Rates& values, std::size_t first, std::size_t last) {
  const std::size_t n = values.size();
  const std::size_t at_an_end = std::max<std::size_t>(2, n / 25);
  const std::size_t between = std::max<std::size_t>(3, n / 10);
  Division best;
  for (std::size_t at = first + 1; at < last; ++at) {
    if (at - first < (first == 0 ? at_an_end : between) || last - at < (last == n ? at_an_end : between)) continue;
    const double difference = mean(slice(values, first, at)) - mean(slice(values, at, last));
    const double left = number(at - first);
    const double right = number(last - at);
    const double explains = difference * difference * left * right / (left + right);
    if (explains > best.explains) best = {at, explains};
  }
  return best;
}

/// Borders between parts; one change for each ten values, at least two and at most seven.
std::vector<std::size_t> plain_borders(const Rates& tamed) {
  const std::size_t n = tamed.size();
  std::vector<std::size_t> borders{0, n};
  const std::size_t changes = n < 20 ? 2 : n >= 70 ? 7 : n / 10;
  for (std::size_t change = 0; change < changes; ++change) {
    Division best;
    for (std::size_t i = 1; i < borders.size(); ++i) {
      const Division here = best_division(tamed, borders[i - 1], borders[i]);
      if (here.explains > best.explains) best = here;
    }
    if (best.explains > 0) borders.push_back(best.at);
    std::sort(borders.begin(), borders.end());
  }
  for (std::size_t i = 1; i + 1 < borders.size(); ++i) {
    const Division moved = best_division(tamed, borders[i - 1], borders[i + 1]);
    if (moved.explains > 0) borders[i] = moved.at;
  }
  return borders;
}

struct PlainNoise {
  double deviation;
  double correlation;
};

PlainNoise plain_noise(const Rates& values, const Rates& tamed, const std::vector<std::size_t>& borders) {
  Rates rest;
  Rates distances;
  for (std::size_t i = 1; i < borders.size(); ++i) {
    const double level = mean(slice(tamed, borders[i - 1], borders[i]));
    for (const double value : slice(values, borders[i - 1], borders[i])) {
      rest.push_back(value - level);
      distances.push_back(std::abs(value - level));
    }
  }
  const double n = number(values.size());
  const double changes = number(borders.size() - 2);
  const double deviation = 1.4826 * median(distances) * std::sqrt(n / (n - 2 * changes));
  for (double& value : rest) value = std::min(std::max(value, -4 * deviation), 4 * deviation);
  return {deviation, correlation_of_neighbours(rest)};
}

/// Variance of the mean of `count` values of which those k apart have the correlation r^k.
double plain_variance_of_mean(const PlainNoise& noise, std::size_t count) {
  double sum = number(count);
  for (std::size_t k = 1; k < count; ++k) sum += 2 * number(count - k) * std::pow(noise.correlation, number(k));
  return noise.deviation * noise.deviation * sum / number(count) / number(count);
}

/// How far two neighbours are apart, in what is asked for: `needed`, and six standard errors.
double plainly_apart(const Rates& one, const Rates& other, const Rates& tamed_one, const Rates& tamed_other,
                     const PlainNoise& noise, double needed) {
  const double distance =
      std::min(std::abs(median(one) - median(other)), std::abs(mean(tamed_one) - mean(tamed_other)));
  const double variance = plain_variance_of_mean(noise, one.size()) + plain_variance_of_mean(noise, other.size());
  return distance == 0 ? 0 : distance / std::max(needed, 6 * std::sqrt(variance));
}

std::vector<Level> plain_levels(const Rates& values, double least) {
  if (values.empty()) return {};
  const Rates tamed = middle_of_three(values);
  std::vector<std::size_t> borders = plain_borders(tamed);
  for (bool all_apart = false; !all_apart;) {
    all_apart = true;
    const PlainNoise noise = plain_noise(values, tamed, borders);
    double nearest = 1;
    std::size_t weakest = 0;
    for (std::size_t i = 1; i + 1 < borders.size(); ++i) {
      const double distance =
          plainly_apart(slice(values, borders[i - 1], borders[i]), slice(values, borders[i], borders[i + 1]),
                        slice(tamed, borders[i - 1], borders[i]), slice(tamed, borders[i], borders[i + 1]), noise,
                        least * std::abs(median(values)));
      if (distance < nearest) nearest = distance, weakest = i, all_apart = false;
    }
    if (!all_apart) borders.erase(borders.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
  std::vector<Level> levels;
  for (std::size_t i = 1; i < borders.size(); ++i) {
    levels.push_back({borders[i - 1], borders[i] - borders[i - 1], median(slice(values, borders[i - 1], borders[i]))});
  }
  return levels;
}

struct PlainRamp {
  std::size_t flat = 0;
  std::size_t end = 0;
  double height = 0;
  double explains = 0;
};

/// Least squares of a shape that is flat and goes to zero at `end` in a straight line; the shortest of the best.
PlainRamp plain_ramp(const Rates& gaps) {
  PlainRamp best;
  for (std::size_t end = 1; end <= gaps.size(); ++end) {
    for (std::size_t flat = 0; flat <= end; ++flat) {
      double products = 0;
      double squares = 0;
      double total = 0;
      for (std::size_t i = 0; i < gaps.size(); ++i) {
        const double shape = std::clamp((number(end) - number(i) - 0.5) / std::max(number(end - flat), 1e-9), 0.0, 1.0);
        products += shape * gaps[i];
        squares += shape * shape;
        total += gaps[i] * gaps[i];
      }
      const double explains = total > 0 ? products * products / squares / total : 0;
      if (explains > best.explains * (1 + 1e-9)) best = {flat, end, products / squares, explains};
    }
  }
  return best;
}

/// Values are taken in groups, so that 48 of them reach as far as `cut`; what is a quarter (and two) behind it counts.
bool plainly_ramps(const Rates& values, std::size_t cut, Better better) {
  const std::size_t n = values.size();
  const double level = median(slice(values, cut, n));
  const std::size_t group = cut / 48 + 1;
  const Rates tamed = middle_of_three(values);
  Rates gaps;
  for (std::size_t i = 0; i + group <= n && i + group <= cut + cut / 4 + 2; i += group) {
    gaps.push_back(mean(slice(tamed, i, i + group)) - level);
  }
  const PlainRamp ramp = plain_ramp(gaps);
  if (ramp.explains < 0.75) return false;
  if (2 * ramp.flat < ramp.end) return true;
  const std::size_t keeps = ramp.flat * group;
  if ((ramp.height > 0) == (better == Better::kHigher)) return keeps < 2;
  return keeps < 3 || 25 * keeps < n;
}

/// Both last parts in front of the cut, of three values or a fiftieth, are as far from the level behind, within 15 %.
bool plainly_ends_with_level(const Rates& values, std::size_t cut, double least) {
  const std::size_t n = values.size();
  const std::size_t group = std::min<std::size_t>(cut / 4, 4) + 1;
  const std::size_t part = std::max<std::size_t>(3, n / 50);
  if (cut < group + 2 * part) return false;
  const std::size_t end = cut - group;
  const double level = median(slice(values, cut, n));
  const double last = median(slice(values, end - part, end)) - level;
  const double before = median(slice(values, end - 2 * part, end - part)) - level;
  return std::abs(last) >= least * std::abs(level) && last / before >= 0.85 && before / last >= 0.85;
}

std::size_t plain_warmup(const Rates& values, double least, Better better) {
  const std::size_t n = values.size();
  const std::size_t warmup = warmup_cut(values);
  const std::vector<Level> all = plain_levels(values, least);
  if (all.size() < 2) return warmup;
  const std::size_t rest = all.back().first;
  if (2 * rest <= n && plainly_ramps(values, rest, better) && !plainly_ends_with_level(values, rest, least)) {
    return std::max(warmup, rest);
  }
  const std::size_t first = all.front().count;
  const bool cuts_a_level = warmup > 0 && first < warmup + std::max<std::size_t>(3, n / 10);
  if (!cuts_a_level) return warmup;
  if (plainly_ends_with_level(values, warmup, least)) return warmup_cut(slice(values, 0, warmup));
  if (!plainly_ramps(values, warmup, better)) return warmup_cut(slice(values, 0, first));
  return warmup;
}

void expect_levels(const std::vector<Level>& found, const std::vector<Level>& wanted, std::size_t behind,
                   const Rates& values) {
  ASSERT_EQ(found.size(), wanted.size()) << testing::PrintToString(values);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, behind + wanted[i].first) << testing::PrintToString(values);
    EXPECT_EQ(found[i].count, wanted[i].count) << testing::PrintToString(values);
    EXPECT_DOUBLE_EQ(found[i].value, wanted[i].value) << testing::PrintToString(values);
  }
}

/// Rates of 1 and less: a beginning, levels and noise of few digits, so that sums are exact.
Rates made(std::mt19937_64& random, std::size_t count) {
  const auto below = [&](std::uint64_t most) { return random() % most; };
  const std::uint64_t noise = below(3) == 0 ? 0 : 1 + below(12);
  const bool correlated = below(3) == 0;
  const std::uint64_t flat = below(3) == 0 ? below(count / 2 + 1) : below(4);
  const std::uint64_t end = below(3) == 0 ? 0 : flat + below(count / 2 + 1);
  const double height = number(below(200)) - 100;
  std::uint64_t change = below(2) == 0 ? count : 2 + below(count);
  double level = 512;
  double wander = 0;
  Rates values;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == change) level += (number(below(80)) - 40) / (1 + number(below(4))), change += 2 + below(count);
    const double jitter = number(below(2 * noise + 1)) - number(noise);
    wander = correlated ? 0.75 * wander + jitter : jitter;
    const double ramp = i < flat ? 1 : i < end ? (number(end) - number(i) - 0.5) / number(end - flat) : 0;
    values.push_back(std::round(level + wander + height * ramp) / 512);
  }
  for (std::uint64_t hiccups = below(4) == 0 ? 1 + below(2) : 0; hiccups > 0; --hiccups) values[below(count)] *= 0.5;
  return values;
}

void expect_as_plain(const Rates& values, double least, Better better) {
  expect_levels(find_levels(values, least), plain_levels(values, least), 0, values);
  const Beginning found = find_beginning(values, least, better);
  const std::size_t warmup = plain_warmup(values, least, better);
  ASSERT_EQ(found.warmup, warmup) << testing::PrintToString(values);
  expect_levels(found.levels, plain_levels(slice(values, warmup, values.size()), least), warmup, values);
}

TEST(LevelsPlain, MadeSeries) {
  std::mt19937_64 random(1);
  for (std::size_t round = 0; round < 500; ++round) {
    Rates values = made(random, round % 10 == 0 ? 90 + random() % 130 : 4 + random() % 50);
    for (double& value : values) value *= round % 3 == 0 ? 8 : 1;
    expect_as_plain(values, round % 2 == 0 ? 0.012 : 0.03, round % 4 < 2 ? Better::kHigher : Better::kLower);
  }
}

/// `behind` values of 1 and in front of them `flat` of `height` more and a straight way from there to the `end`.
Rates ramp_of(std::size_t flat, std::size_t end, std::size_t behind, double height) {
  Rates values;
  for (std::size_t i = 0; i < end + behind; ++i) {
    const double share = i < flat ? 1 : i < end ? (number(end) - number(i) - 0.5) / number(end - flat) : 0;
    values.push_back(1 + std::round(512 * height * share) / 512);
  }
  return values;
}

TEST(LevelsPlain, RampsOfEveryLength) {
  for (const double height : {-0.5, 0.5}) {
    for (std::size_t end = 1; end <= 12; ++end) {
      for (std::size_t flat = 0; flat <= end; ++flat) {
        for (const std::size_t behind : {end, end + 1, 20 + end}) {
          expect_as_plain(ramp_of(flat, end, behind, height), 0.012, Better::kHigher);
        }
      }
    }
    for (const std::size_t end : {45u, 47u, 48u, 49u, 96u}) {
      for (std::size_t flat = 1; flat <= end; flat = flat * 5 / 2 + 1) {
        expect_as_plain(ramp_of(flat, end, end + 5, height), 0.012, Better::kHigher);
      }
    }
  }
}

TEST(LevelsPlain, ALongSlowBeginningIsALevelWhateverFollows) {
  Rates values(200, 1.0);
  for (std::size_t i = 0; i < 60; ++i) values[i] = i < 20 ? 0.5 : 0.94 + 0.001 * number(i - 20);
  EXPECT_LE(find_beginning(values, 0.03).warmup, 20u);
  EXPECT_EQ(find_beginning(values, 0.03).levels.front().first, find_beginning(values, 0.03).warmup);
  expect_as_plain(values, 0.03, Better::kHigher);
}

/// `lengths` values of each of the `levels`, one after another.
Rates levels_of(const std::vector<std::size_t>& lengths, const Rates& levels) {
  Rates values;
  for (std::size_t i = 0; i < lengths.size(); ++i) values.insert(values.end(), lengths[i], levels[i]);
  return values;
}

std::vector<std::size_t> firsts(const Rates& values) {
  std::vector<std::size_t> found;
  for (const Level& level : find_levels(values, 0.012)) found.push_back(level.first);
  return found;
}

TEST(LevelsPlain, ALevelLasts) {
  using Firsts = std::vector<std::size_t>;
  // Two values and 4 % of all at an end,
  EXPECT_EQ(firsts(levels_of({2, 72}, {2, 1})), (Firsts{0, 2}));
  EXPECT_EQ(firsts(levels_of({3, 72}, {2, 1})), (Firsts{0, 3}));
  EXPECT_EQ(firsts(levels_of({72, 3}, {2, 1})), (Firsts{0, 72}));
  // three and a tenth between others.
  EXPECT_EQ(firsts(levels_of({20, 3, 16}, {1, 2, 1})), (Firsts{0, 20, 23}));
  EXPECT_EQ(firsts(levels_of({20, 4, 16}, {1, 2, 1})), (Firsts{0, 20, 24}));
  // Two changes, and one for each ten values up to seven; of two as large the first.
  EXPECT_EQ(firsts(levels_of({3, 6, 4, 4}, {1, 2, 5, 6})), (Firsts{0, 3, 9}));
  EXPECT_EQ(firsts(levels_of({7, 7, 8, 7}, {1, 2, 5, 6})), (Firsts{0, 14, 22}));
  EXPECT_EQ(firsts(levels_of({7, 8, 8, 7}, {1, 2, 5, 6})), (Firsts{0, 7, 15, 23}));
  const Rates nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(firsts(levels_of(std::vector<std::size_t>(8, 10), nine)).size(), 8u);
  EXPECT_EQ(firsts(levels_of(std::vector<std::size_t>(9, 10), nine)).size(), 8u);
}

// Of nothing any difference is enough.
TEST(LevelsPlain, OfSeriesThatAreMostlyZero) {
  const std::vector<Level> found = find_levels(levels_of({14, 8}, {0, 5}), 0.012);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].first, 14u);
  EXPECT_EQ(found[1].value, 5);
  EXPECT_EQ(find_levels(levels_of({10, 1, 9}, {0, 5, 0}), 0.012).size(), 1u);
}

}  // namespace
}  // namespace gdrperf::stats
