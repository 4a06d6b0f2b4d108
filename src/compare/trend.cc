#include "gdrperf/compare/trend.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gdrperf/stats/change_points.h"
#include "gdrperf/stats/summary.h"

namespace gdrperf::compare {
namespace {

struct History {
  std::vector<double> values;
  std::vector<const Session*> sessions;
  std::vector<const CellKey*> keys;
};

TrendChange describe(const History& history, std::size_t first, std::size_t at, std::size_t last, double p) {
  const std::span<const double> values(history.values);
  TrendChange change;
  change.since = history.sessions[at]->started;
  change.path = history.sessions[at]->path;
  change.before = stats::median(values.subspan(first, at - first));
  change.after = stats::median(values.subspan(at, last - at));
  change.change = change.after / change.before - 1;
  change.p = p;
  change.sessions_before = at - first;
  change.sessions_after = last - at;
  change.conditions = changes(*history.keys[at - 1], *history.keys[at], {});
  return change;
}

std::vector<TrendChange> changes_of(const History& history, double threshold, double alpha) {
  std::vector<TrendChange> result;
  const std::vector<stats::ChangePoint> points = stats::change_points(history.values, alpha);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t first = i == 0 ? 0 : points[i - 1].index;
    const std::size_t last = i + 1 == points.size() ? history.values.size() : points[i + 1].index;
    TrendChange change = describe(history, first, points[i].index, last, points[i].p);
    if (std::abs(change.change) >= threshold) result.push_back(std::move(change));
  }
  return result;
}

}  // namespace

Trends find_trends(std::vector<Session> sessions, double threshold, double alpha) {
  std::stable_sort(sessions.begin(), sessions.end(),
                   [](const Session& one, const Session& other) { return one.started < other.started; });
  std::map<Outside, History> histories;
  for (const Session& session : sessions) {
    for (const CellValue& cell : session.cells) {
      History& history = histories[cell.key.name];
      history.values.push_back(cell.value);
      history.sessions.push_back(&session);
      history.keys.push_back(&cell.key);
    }
  }
  Trends trends;
  trends.cells = histories.size();
  for (const auto& [name, history] : histories) {
    if (history.values.size() < stats::kFewestForChange) ++trends.too_short;
    std::vector<TrendChange> found = changes_of(history, threshold, alpha);
    if (found.empty()) continue;
    trends.changed.push_back({name, history.keys.front()->better, history.values.size(), std::move(found)});
  }
  return trends;
}

}  // namespace gdrperf::compare
