#include <algorithm>
#include <limits>
#include <map>

#include "gdrperf/page/page.h"

namespace gdrperf::page {

PageTrend trend_of(const std::string& folder, std::vector<compare::Session> sessions) {
  constexpr double kTrendThreshold = 0.02;
  constexpr double kTrendAlpha = 0.01;
  std::stable_sort(sessions.begin(), sessions.end(),
                   [](const auto& one, const auto& other) { return one.started < other.started; });
  PageTrend trend;
  trend.folder = folder;
  if (!sessions.empty()) trend.machine = sessions.back().machine;
  std::map<Outside, PageTrend::Cell> cells;
  for (std::size_t at = 0; at < sessions.size(); ++at) {
    trend.sessions.emplace_back(sessions[at].started, sessions[at].path);
    for (const compare::CellValue& each : sessions[at].cells) {
      PageTrend::Cell& cell = cells[each.key.name];
      cell.name = each.key.name;
      cell.better = each.key.better;
      cell.values.resize(sessions.size(), std::numeric_limits<double>::quiet_NaN());
      cell.values[at] = each.value;
    }
  }
  for (auto& [name, cell] : cells) trend.cells.push_back(std::move(cell));
  trend.trends = compare::find_trends(std::move(sessions), kTrendThreshold, kTrendAlpha);
  return trend;
}

}  // namespace gdrperf::page
