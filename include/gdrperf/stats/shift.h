#pragma once

#include <optional>
#include <span>

namespace gdrperf::stats {

/// Hodges-Lehmann: the median of all differences `second` - `first`, by how
/// much the second lies higher, whatever the shape of both. NaN when either is
/// empty. Takes n1 * n2 doubles while it works.
double hodges_lehmann_shift(std::span<const double> first, std::span<const double> second);

/// The standard deviation, unimpressed by a tenth of outliers: the lowest and
/// the highest n/10 values (rounded down) are replaced by their neighbours and
/// the result is scaled so that it is the standard deviation of normal values.
/// NaN below two values.
double robust_spread(std::span<const double> values);
/// Degrees of freedom of robust_spread() of `n` values: what was not replaced, less one.
int spread_freedom(std::size_t n);

/// Scatter by which a difference is judged: what was found, never below `step`, the smallest difference that the clock,
/// or the digits of the values, show.
double judging_scatter(double found, double step);
/// The same of `controls`, by robust_spread(). nullopt with fewer than two controls, or where neither they nor the step
/// say anything: what cannot be judged stays undecided.
std::optional<double> judging_scatter(std::span<const double> controls, double step);

/// t with P(T <= t) = p for Student's distribution with `freedom` >= 1 degrees
/// of freedom; above 300 of them as with 300. p in (0.5, 1).
double student_t_quantile(double p, int freedom);

}  // namespace gdrperf::stats
