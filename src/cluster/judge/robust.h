#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gdrperf::cluster {

/// Value below which the share `q` of `values` lies (nearest rank, downwards); reorders
/// them. 0 when empty.
float quantile(std::span<float> values, double q);

/// Median, and 1.4826 times the median distance from it: the standard deviation
/// of a normal distribution, whatever a minority does.
struct Center {
  double median = 0;
  double sigma = 0;
};
Center robust_center(std::vector<float> values);

/// Typical step between neighbouring ones of `values`, where most of them repeat, as those of a coarse clock do; else
/// 0.
double step_of(std::vector<float> values);

/// Upper bound (Chernoff) of the logarithm of the chance that `bad` of `count` draws or more are bad, each with the
/// chance `share`.
double log_chance(double bad, double count, double share);
/// The same exactly, of a binomial distribution: less by a factor of some, and what asks for retests.
double log_tail(double bad, double count, double share);

/// Values by group, in one block: count() all, then layout(), then add() all.
class Grouped {
 public:
  explicit Grouped(std::size_t groups) : first_(groups + 1, 0) {}
  void count(std::size_t group) { ++first_[group + 1]; }
  void layout();
  void add(std::size_t group, float value) { values_[next_[group]++] = value; }
  std::size_t groups() const { return first_.size() - 1; }
  std::span<float> of(std::size_t group) {
    return std::span(values_).subspan(first_[group], first_[group + 1] - first_[group]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::size_t> next_;
  std::vector<float> values_;
};

}  // namespace gdrperf::cluster
