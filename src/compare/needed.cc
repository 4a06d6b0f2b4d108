#include "compare/needed.h"

#include <algorithm>
#include <cmath>

#include "gdrperf/stats/normal.h"
#include "gdrperf/stats/rank_sum.h"

namespace gdrperf::compare {
namespace {

/// Nobody waits for more.
constexpr std::size_t kMost = 60;

}  // namespace

Needed sessions_needed(std::size_t baseline, std::size_t candidates, double level) {
  for (std::size_t more = 0; more <= kMost; ++more) {
    for (std::size_t to_baseline = 0; to_baseline <= more; ++to_baseline) {
      const Needed needed{to_baseline, more - to_baseline};
      // 1 where a side has none.
      if (stats::smallest_rank_p(baseline + needed.baseline, candidates + needed.candidates) <= level) return needed;
    }
  }
  return {kMost, kMost};
}

std::size_t candidates_for_overlap(std::size_t candidates, double p, double level) {
  const double have = -stats::normal_quantile(p);
  const double want = -stats::normal_quantile(level);
  if (have <= 0) return kMost;
  const double times = (want / have) * (want / have) - 1;
  const double more = std::ceil(times * static_cast<double>(candidates));
  return static_cast<std::size_t>(std::clamp(more, 1.0, static_cast<double>(kMost)));
}

}  // namespace gdrperf::compare
