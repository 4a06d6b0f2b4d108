#include "gdrperf/report/path_verdict.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

PathVerdict verdict_on(const std::vector<PathPoint>& points, Metric metric = Metric::kBandwidth) {
  PathVerdict verdict{{Operation::kWrite, metric}, "mlx5_0 cuda:0", "mlx5_1 host", "PIX", {}};
  for (std::size_t at = 0; at < points.size(); ++at) verdict.points[std::uint64_t{1024} << at] = points[at];
  return verdict;
}

/// What a size came to: direct or staged is better, they are equal, one run is unstable, one was not run.
struct Outcome {
  char kind;
  PathPoint point;
};
constexpr Outcome kOutcomes[] = {
    {'d', {2, 1, false}}, {'s', {2, 3, false}}, {'e', {2, 2, false}}, {'u', {1, 9, true}}, {'-', {0, 2, false}}};

/// The verdict on a row of outcomes, in plain steps.
std::string plain_words(const std::string& kinds) {
  std::string ways;
  std::vector<std::string> sizes;
  for (std::size_t at = 0; at < kinds.size(); ++at) {
    if (kinds[at] == 'u' || kinds[at] == '-') continue;
    ways += kinds[at] == 's' ? 's' : 'd';  // staged has to be better
    sizes.push_back(std::to_string(1 << at) + " KiB");
  }
  const auto unstable = std::count(kinds.begin(), kinds.end(), 'u');
  if (ways.empty()) return unstable > 0 ? "not known: no size is stable both ways" : "";
  std::string left_out;
  if (unstable == 1) left_out = " (1 unstable size left out)";
  if (unstable > 1) left_out = " (" + std::to_string(unstable) + " unstable sizes left out)";
  const auto staged = std::count(ways.begin(), ways.end(), 's');
  if (ways.find('s') == std::string::npos) return "direct at every size" + left_out;
  if (ways.find('d') == std::string::npos) return "staged at every size" + left_out;
  std::vector<std::size_t> changes;
  for (std::size_t at = 1; at < ways.size(); ++at) {
    if (ways[at] != ways[at - 1]) changes.push_back(at);
  }
  if (changes.size() > 1) {
    return "not the same at every size: staged at " + std::to_string(staged) + " of " + std::to_string(ways.size()) +
           " sizes" + left_out;
  }
  const std::string& from = sizes[changes[0]];
  return (ways[0] == 's' ? "staged below " + from + ", direct" : "direct below " + from + ", staged") +
         " from there on" + left_out;
}

TEST(PathVerdictWords, OfEveryRowOfUpToFiveSizes) {
  std::vector<std::string> rows = {""};
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::string row = rows[at];
    std::vector<PathPoint> points;
    for (const char kind : row) {
      points.push_back(std::find_if(std::begin(kOutcomes), std::end(kOutcomes), [&](const Outcome& one) {
                         return one.kind == kind;
                       })->point);
    }
    ASSERT_EQ(verdict_on(points).words(), plain_words(row)) << row;
    // A latency is better where it is less.
    for (PathPoint& point : points) std::swap(point.direct, point.staged);
    ASSERT_EQ(verdict_on(points, Metric::kLatency).words(), plain_words(row)) << row;
    if (row.size() == 5) continue;
    for (const Outcome& each : kOutcomes) rows.push_back(row + each.kind);
  }
}

TEST(PathVerdictWords, TheCrossoverIsTheFirstSizeOfTheOtherWay) {
  const PathPoint direct{2, 1, false}, staged{1, 4, false};
  EXPECT_EQ(verdict_on({direct, direct}).crossover_bytes(), 0u);
  EXPECT_EQ(verdict_on({direct, staged}).crossover_bytes(), 2048u);
  EXPECT_EQ(verdict_on({direct, staged, staged}).crossover_bytes(), 2048u);
  EXPECT_EQ(verdict_on({staged, staged, direct}).crossover_bytes(), 4096u);
  EXPECT_EQ(verdict_on({staged, direct, staged}).crossover_bytes(), 0u) << "to and fro";
}

RunRecord way_of(Path path, std::uint64_t size, double value, Metric metric = Metric::kBandwidth) {
  RunRecord record;
  record.spec.test = {Operation::kWrite, metric};
  record.spec.size_bytes = size;
  record.spec.path = path;
  record.relation = "PIX";
  record.client.device = "mlx5_0";
  record.client.buffer = "cuda:0";
  record.client.gpu = GpuInfo{};
  record.server.device = "mlx5_1\r";
  record.server.buffer = "host";
  if (metric == Metric::kBandwidth) {
    record.measured.bandwidth = Bandwidth{};
    record.measured.bandwidth->median_gbytes = value;
  } else {
    record.measured.latency = Latency{};
    record.measured.latency->p50_ns = value;
  }
  return record;
}

PathVerdicts both_tests() {
  PathVerdicts verdicts;
  verdicts.add(way_of(Path::kDirect, 1 << 10, 7));  // one way alone
  verdicts.add(way_of(Path::kDirect, 1 << 16, 5));
  verdicts.add(way_of(Path::kStaged, 1 << 16, 2.5));
  RunRecord unstable = way_of(Path::kStaged, 1 << 20, 12.5);
  unstable.measured.unstable = true;
  verdicts.add(way_of(Path::kDirect, 1 << 20, 10));
  verdicts.add(unstable);
  verdicts.add(way_of(Path::kDirect, 8, 2000, Metric::kLatency));
  verdicts.add(way_of(Path::kStaged, 8, 8000, Metric::kLatency));
  verdicts.add(way_of(Path::kStaged, 16, 8000, Metric::kLatency));
  return verdicts;
}

TEST(PathVerdictText, ATableOfEachTest) {
  EXPECT_EQ(to_text(both_tests().all()),
            "\nwrite_bw mlx5_0 cuda:0 to mlx5_1\xef\xbf\xbd host: direct or staged\n"
            "      size   direct GB/s   staged GB/s staged x\n"
            "    64 KiB             5           2.5     0.50\n"
            "     1 MiB            10          12.5     1.25 !\n"
            "  better: direct at every size (1 unstable size left out)\n"
            "\nwrite_lat mlx5_0 cuda:0 to mlx5_1\xef\xbf\xbd host: direct or staged\n"
            "      size     direct us     staged us staged x\n"
            "       8 B             2             8     0.25\n"
            "  better: direct at every size\n");
  EXPECT_EQ(words_of(both_tests().all()),
            "\nDirect or staged\n"
            "  write_bw mlx5_0 cuda:0 to mlx5_1\xef\xbf\xbd host: direct at every size (1 unstable size left out)\n"
            "  write_lat mlx5_0 cuda:0 to mlx5_1\xef\xbf\xbd host: direct at every size\n");
  EXPECT_EQ(to_text(std::vector<PathVerdict>()), "");
  EXPECT_EQ(words_of({}), "");
}

TEST(PathVerdicts, AreOfOneTestBetweenTwoEnds) {
  const RunRecord direct = way_of(Path::kDirect, 64, 5);
  const auto together = [&](const RunRecord& staged) {
    PathVerdicts verdicts;
    verdicts.add(direct);
    verdicts.add(staged);
    return verdicts.all().size() == 1;
  };
  RunRecord staged = way_of(Path::kStaged, 64, 5);
  EXPECT_TRUE(together(staged));
  staged.spec.test.operation = Operation::kRead;
  EXPECT_FALSE(together(staged));
  staged = way_of(Path::kStaged, 64, 5);
  staged.client.device = "mlx5_2";
  EXPECT_FALSE(together(staged));
  staged = way_of(Path::kStaged, 64, 5);
  staged.server.buffer = "cuda:1";
  EXPECT_FALSE(together(staged));
}

TEST(PathVerdicts, ConcernMemoryOfAGpuAtEitherEnd) {
  const auto counted = [](bool client, bool server, bool consume) {
    PathVerdicts verdicts;
    for (const Path path : {Path::kDirect, Path::kStaged}) {
      RunRecord record = way_of(path, 64, 5);
      if (!client) record.client.gpu.reset();
      if (server) record.server.gpu = GpuInfo{};
      record.spec.consume = consume;
      verdicts.add(record);
    }
    return !verdicts.all().empty();
  };
  EXPECT_TRUE(counted(true, false, false));
  EXPECT_TRUE(counted(false, true, false));
  EXPECT_TRUE(counted(true, true, false));
  EXPECT_FALSE(counted(false, false, false));
  EXPECT_FALSE(counted(true, false, true)) << "what is consumed is a test of its own";
}

}  // namespace
}  // namespace gdrperf::report
