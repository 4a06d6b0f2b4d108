#include "gdrperf/compare/trend.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.h"

namespace gdrperf::compare {
namespace {

Session session(int day, double figure, const std::string& firmware) {
  MadeDocument document;
  document.started = fmt::format("2025-02-{:02}T12:00:00Z", day);
  document.firmware = firmware;
  document.runs[0].figure = fmt::format("{}", figure + 0.01 * (day % 3));
  return parse_session(text_of(document), fmt::format("day{}.json", day));
}

TEST(Trend, AChangeIsNamedWithWhatChangedWithIt) {
  std::vector<Session> sessions;
  for (int day = 28; day >= 1; --day)
    sessions.push_back(session(day, day < 15 ? 100 : 93, day < 15 ? "28.39" : "28.40"));
  const Trends trends = find_trends(std::move(sessions), 0.02, 0.01);
  ASSERT_EQ(trends.changed.size(), 1u);
  EXPECT_EQ(trends.changed[0].cell, "write_bw/HOST/host:mlx5_0/65536");
  EXPECT_EQ(trends.changed[0].sessions, 28u);
  ASSERT_EQ(trends.changed[0].changes.size(), 1u);
  const TrendChange& change = trends.changed[0].changes[0];
  EXPECT_EQ(change.since, "2025-02-15T12:00:00Z");
  EXPECT_EQ(change.path, "day15.json");
  EXPECT_NEAR(change.change, -0.07, 0.001);
  EXPECT_EQ(change.sessions_before, 14u);
  EXPECT_EQ(change.sessions_after, 14u);
  ASSERT_EQ(change.conditions.size(), 1u);
  EXPECT_EQ(change.conditions[0].name, "firmware");
}

TEST(Trend, SmallChangesAndShortHistoriesAreNone) {
  std::vector<Session> sessions;
  for (int day = 1; day <= 28; ++day) sessions.push_back(session(day, day < 15 ? 100 : 99, "28.39"));
  EXPECT_TRUE(find_trends(sessions, 0.02, 0.01).changed.empty());
  EXPECT_EQ(find_trends(sessions, 0.005, 0.01).changed.size(), 1u);
  sessions.resize(5);
  const Trends trends = find_trends(sessions, 0.005, 0.01);
  EXPECT_EQ(trends.cells, 1u);
  EXPECT_EQ(trends.too_short, 1u);
}

/// A cell whose history has a level for each day. Its kernel changes with session 20, and with session 29.
std::vector<Session> history_of(const std::vector<double>& levels, const std::string& name = "a") {
  std::vector<Session> sessions;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Session& each = sessions.emplace_back();
    each.started = fmt::format("2025-{:03}", i);
    each.path = fmt::format("{}.json", i);
    each.cells = {{{name,
                    {{"kernel", i < 20   ? "6.1"
                                : i < 29 ? "6.2"
                                         : "6.3"}},
                    Better::kLower},
                   levels[i] * (1 + 1e-4 * static_cast<double>(i % 3))}};
  }
  return sessions;
}

/// 10 sessions at each level.
std::vector<double> stairs(const std::vector<double>& levels) {
  std::vector<double> all;
  for (const double level : levels) all.insert(all.end(), 10, level);
  return all;
}

TEST(Trend, EachChangeReachesToItsNeighbours) {
  const Trends trends = find_trends(history_of(stairs({100, 120, 90, 130})), 0.02, 0.01);
  ASSERT_EQ(trends.changed.size(), 1u);
  EXPECT_EQ(trends.cells, 1u);
  EXPECT_EQ(trends.too_short, 0u);
  EXPECT_EQ(trends.changed[0].better, Better::kLower);
  EXPECT_EQ(trends.changed[0].sessions, 40u);
  const std::vector<TrendChange>& changes = trends.changed[0].changes;
  ASSERT_EQ(changes.size(), 3u);
  const double levels[] = {100, 120, 90, 130};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(changes[i].since, fmt::format("2025-{:03}", 10 * (i + 1)));
    EXPECT_EQ(changes[i].path, fmt::format("{}.json", 10 * (i + 1)));
    EXPECT_EQ(changes[i].sessions_before, 10u);
    EXPECT_EQ(changes[i].sessions_after, 10u);
    EXPECT_NEAR(changes[i].before, levels[i] * 1.0001, 1e-9);
    EXPECT_NEAR(changes[i].after, levels[i + 1] * 1.0001, 1e-9);
    EXPECT_NEAR(changes[i].change, levels[i + 1] / levels[i] - 1, 1e-9);
    EXPECT_LE(changes[i].p, 0.01);
    EXPECT_EQ(changes[i].conditions.size(), i == 1 ? 1u : 0u);
  }
}

TEST(Trend, ChangesOfTheThresholdAndMore) {
  std::vector<double> levels = stairs({100, 110});
  std::vector<Session> sessions = history_of(levels);
  // All of one level are equal, so that its median is exact.
  for (std::size_t i = 0; i < sessions.size(); ++i) sessions[i].cells[0].value = levels[i];
  const double change = 110.0 / 100.0 - 1;
  EXPECT_EQ(find_trends(sessions, change, 0.01).changed.size(), 1u);
  EXPECT_EQ(find_trends(sessions, std::nextafter(change, 1), 0.01).changed.size(), 0u);
  for (Session& each : sessions) each.cells[0].value = 11000 / each.cells[0].value;
  EXPECT_EQ(find_trends(sessions, 0.09, 0.01).changed.size(), 1u);
  EXPECT_EQ(find_trends(sessions, 0.0911, 0.01).changed.size(), 0u);
}

TEST(Trend, CellsOfTheirOwnAndShortOnesCounted) {
  std::vector<Session> sessions = history_of(stairs({100, 120}));
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const double value = 100 + static_cast<double>(i * 7 % 5);
    sessions[i].cells.push_back({{"still", {}, Better::kHigher}, value});
    sessions[i].cells.push_back({{"z", {}, Better::kHigher}, i < 10 ? value : 2 * value});
    if (i < 7) sessions[i].cells.push_back({{"seven", {}, Better::kHigher}, value});
    if (i < 8) sessions[i].cells.push_back({{"eight", {}, Better::kHigher}, value});
  }
  const Trends trends = find_trends(sessions, 0.02, 0.01);
  EXPECT_EQ(trends.cells, 5u);
  EXPECT_EQ(trends.too_short, 1u);
  ASSERT_EQ(trends.changed.size(), 2u);
  EXPECT_EQ(trends.changed[0].cell, "a");
  EXPECT_EQ(trends.changed[1].cell, "z");
  EXPECT_EQ(trends.changed[1].better, Better::kHigher);
}

TEST(Trend, SessionsOfOneStartStayInTheirOrder) {
  std::vector<Session> sessions = history_of(stairs({100, 120}));
  for (Session& each : sessions) each.started = "2025-01-31";
  const Trends trends = find_trends(sessions, 0.02, 0.01);
  ASSERT_EQ(trends.changed.size(), 1u);
  EXPECT_EQ(trends.changed[0].changes.at(0).path, "10.json");
}

}  // namespace
}  // namespace gdrperf::compare
