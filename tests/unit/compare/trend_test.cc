#include "gdrperf/compare/trend.h"

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
  for (int day = 28; day >= 1; --day) sessions.push_back(session(day, day < 15 ? 100 : 93, day < 15 ? "28.39" : "28.40"));
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

}  // namespace
}  // namespace gdrperf::compare
