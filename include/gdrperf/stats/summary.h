#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace gdrperf::stats {

struct Interval {
  double low = 0;
  double high = 0;
};

/// Middle value; of an even number the mean of both middle ones. NaN when empty.
double median(std::span<const double> values);
/// NaN when empty.
double mean(std::span<const double> values);

/// 0-based indexes (low, high) into the ascending values such that the median
/// of what they were drawn from lies in [value[low], value[high]] with a chance of
/// 95 % or more, whatever the distribution: the narrowest symmetric pair by the
/// binomial distribution, exact up to n = 10,000, its normal approximation (rounded
/// outwards) beyond. nullopt below 6.
std::optional<std::pair<std::uint64_t, std::uint64_t>> rank_interval(std::uint64_t n);

/// rank_interval() of `values` (any order), as values.
std::optional<Interval> median_interval(std::span<const double> values);

/// All of the above of one series; NaN where `values` is empty.
struct Summary {
  double median = 0;
  double mean = 0;
  double min = 0;
  double max = 0;
  std::optional<Interval> median_ci;  ///< 95 %; nullopt below 6 values
};
Summary summarize(std::span<const double> values);

/// The same of rates over stretches of time: each counts for as long as it lasted,
/// so that many short ones do not outvote a long one. `seconds` as many as `values`,
/// all above 0; of equal length it is summarize() of them. Ranks of the interval are
/// those of that many values.
Summary summarize_weighted(std::span<const double> values, std::span<const double> seconds);

/// The same of a series in time order whose neighbours may be alike (`seconds` empty: all as long): the interval is as
/// wide as that of effective_count() independent values (autocorrelation.h), and not below 0 where no value is.
/// bench/coverage.cc says how often it holds.
Summary summarize_series(std::span<const double> values, std::span<const double> seconds);

}  // namespace gdrperf::stats
