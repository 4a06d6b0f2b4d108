#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gdrperf/compare/session.h"
#include "gdrperf/compare/side.h"

namespace gdrperf::compare {

/// A cell's level changed.
struct TrendChange {
  std::string since;    ///< RFC 3339: the first session after it
  Outside path;         ///< of that session
  double before = 0;    ///< medians of the sessions up to the changes next to it
  double after = 0;
  double change = 0;    ///< after against before as a share, in the figure's own direction
  double p = 1;
  std::size_t sessions_before = 0;
  std::size_t sessions_after = 0;
  std::vector<Change> conditions;  ///< what else changed with that session
};

struct CellTrend {
  Outside cell;
  Better better = Better::kHigher;
  std::size_t sessions = 0;
  std::vector<TrendChange> changes;  ///< in time order
};

struct Trends {
  std::vector<CellTrend> changed;  ///< by name; cells that changed
  std::size_t cells = 0;
  std::size_t too_short = 0;  ///< cells with fewer than stats::kFewestForChange sessions
};

/// Change points of each cell's history, whatever the conditions: sessions are put
/// in the order in which they were started, and stats::change_points() looks for
/// changes of level at `alpha`; those smaller than `threshold` (a share) are left
/// out. Advisory: history is no experiment.
Trends find_trends(std::vector<Session> sessions, double threshold, double alpha);

}  // namespace gdrperf::compare
