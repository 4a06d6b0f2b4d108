// How often the 95 % interval of a median holds the true one, over made-up series of batches whose neighbours are
// correlated.
//
// usage: coverage [SERIES_OF_A_KIND]

#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gdrperf/stats/summary.h"

namespace {

enum class Shape { kNormal, kHeavy, kSkewed };

/// `n` values about a median of 1.
std::vector<double> series(std::mt19937_64& random, std::size_t n, double correlation, Shape shape) {
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values(n);
  double state = normal(random);
  for (double& value : values) {
    value = shape == Shape::kNormal ? state : shape == Shape::kHeavy ? std::sinh(state) : std::exp(state) - 1;
    value = 1 + 0.003 * value;
    state = correlation * state + std::sqrt(1 - correlation * correlation) * normal(random);
  }
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  const int number = argc > 1 ? std::atoi(argv[1]) : 4000;
  double least = 1;
  fmt::print("{:<10}{:>8}  coverage in % (and width relative to that by ranks) at a correlation of\n", "shape",
             "batches");
  fmt::print("{:<18}", "");
  const std::vector<double> correlations = {0, 0.12, 0.3, 0.5, 0.65, 0.8};
  for (const double correlation : correlations) fmt::print("{:>14}", correlation);
  fmt::print("\n");
  const std::vector<std::pair<Shape, const char*>> shapes = {
      {Shape::kNormal, "normal"}, {Shape::kHeavy, "heavy"}, {Shape::kSkewed, "skewed"}};
  for (const auto& [shape, name] : shapes) {
    for (const std::size_t n : {12, 30, 40, 60, 100, 300, 1000}) {
      fmt::print("{:<10}{:>8}", name, n);
      for (const double correlation : correlations) {
        std::mt19937_64 random(n);
        int held = 0;
        std::vector<double> widths;
        for (int i = 0; i < number; ++i) {
          const std::vector<double> values = series(random, n, correlation, shape);
          const auto interval = gdrperf::stats::summarize_series(values, {}).median_ci;
          const auto plain = gdrperf::stats::median_interval(values);
          held += interval && interval->low <= 1 && interval->high >= 1;
          if (interval) widths.push_back((interval->high - interval->low) / (plain->high - plain->low));
        }
        const double coverage = static_cast<double>(held) / number;
        if (n >= 30) least = std::min(least, coverage);
        fmt::print("{:>7.1f} ({:.2f})", 100 * coverage, gdrperf::stats::median(widths));
      }
      fmt::print("\n");
    }
  }
  fmt::print("least coverage from 30 batches on: {:.1f} %\n", 100 * least);
}
