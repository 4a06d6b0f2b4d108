#include "compare/needed.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gdrperf/stats/rank_sum.h"

namespace gdrperf::compare {
namespace {

constexpr std::size_t kMostWaitedFor = 60;

/// 1 / C(n1 + n2, n1), by Pascal's rule.
double least_p(std::size_t n1, std::size_t n2) {
  std::vector<double> ways(n2 + 1, 1.0);
  for (std::size_t row = 0; row < n1; ++row) {
    for (std::size_t i = 1; i <= n2; ++i) ways[i] += ways[i - 1];
  }
  return 1 / ways[n2];
}

/// All additions to either side, the fewest first, candidates rather than baseline.
Needed plainly_needed(std::size_t baseline, std::size_t candidates, double level) {
  Needed best{kMostWaitedFor, kMostWaitedFor};
  std::size_t fewest = kMostWaitedFor + 1;
  for (std::size_t b = 0; b <= kMostWaitedFor; ++b) {
    for (std::size_t c = 0; b + c <= kMostWaitedFor; ++c) {
      if (b + c >= fewest || least_p(baseline + b, candidates + c) > level * (1 + 1e-9)) continue;
      best = {b, c};
      fewest = b + c;
    }
  }
  return best;
}

TEST(Needed, TheFewestSessionsThatCouldDecide) {
  for (const double level : {0.2, 0.01, 1e-4, 1e-6}) {
    for (const std::size_t baseline : {0u, 1u, 2u, 5u, 20u}) {
      for (const std::size_t candidates : {0u, 1u, 3u, 9u}) {
        const Needed needed = sessions_needed(baseline, candidates, level);
        const Needed plain = plainly_needed(baseline, candidates, level);
        EXPECT_EQ(needed.baseline, plain.baseline) << baseline << " " << candidates << " " << level;
        EXPECT_EQ(needed.candidates, plain.candidates) << baseline << " " << candidates << " " << level;
      }
    }
  }
}

TEST(Needed, NoneWhereRanksReachTheLevelExactly) {
  const double least = stats::smallest_rank_p(4, 5);
  EXPECT_NEAR(least, 1.0 / 126, 1e-12);
  EXPECT_EQ(sessions_needed(4, 5, least).candidates, 0u);
  EXPECT_EQ(sessions_needed(4, 5, least).baseline, 0u);
  EXPECT_EQ(sessions_needed(4, 5, 0.999 * least).candidates, 1u);
}

TEST(Needed, NobodyWaitsForMoreThan60) {
  // One session a side and 60 more: 1 / C(62, 31) = 2.15e-18; with 61 more 1.07e-18.
  const Needed sixty = sessions_needed(1, 1, 2.2e-18);
  EXPECT_EQ(sixty.baseline, 30u);
  EXPECT_EQ(sixty.candidates, 30u);
  const Needed beyond = sessions_needed(1, 1, 1.1e-18);
  EXPECT_EQ(beyond.baseline, 60u);
  EXPECT_EQ(beyond.candidates, 60u);
}

TEST(Needed, OverlappingSessionsCountByTheSquareOfTheQuantile) {
  struct Case {
    std::size_t candidates;
    double p;
    double level;
    std::size_t more;
  };
  // Normal quantiles: 0.01 -> 2.3263, 0.001 -> 3.0902, 0.05 -> 1.6449, 0.2 -> 0.8416, 0.1 -> 1.2816, 0.4 -> 0.2533.
  const Case kCases[] = {
      {9, 0.05, 0.01, 10},   // 9 * (2.0003 - 1) = 9.002
      {4, 0.2, 0.01, 27},    // 4 * (7.640 - 1) = 26.56
      {3, 0.2, 0.01, 20},    // 19.92
      {9, 0.1, 0.05, 6},     // 9 * (1.6473 - 1) = 5.83
      {2, 0.05, 0.001, 6},   // 2 * (3.5294 - 1) = 5.06
      {1, 0.05, 0.04, 1},    // (1.7507 / 1.6449)^2 - 1 = 0.13
      {9, 0.01, 0.05, 1},    // more than enough already, yet p is one of ranks
      {9, 0.4, 0.01, 60},    // 9 * 83.3: too many
      {9, 0.5, 0.01, 60},    // no direction at all
      {9, 0.9, 0.01, 60},    // the other direction
      {1, 0.9, 0.2, 60},     // as far in the other direction as the level is in this
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(candidates_for_overlap(each.candidates, each.p, each.level), each.more)
        << each.candidates << " " << each.p << " " << each.level;
  }
}

}  // namespace
}  // namespace gdrperf::compare
