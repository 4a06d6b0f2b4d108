#include "gdrperf/report/relations.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

RunRecord pair_rate(const char* relation, std::uint64_t size, double gbytes) {
  RunRecord record;
  record.device_kind = "hardware";
  record.spec.size_bytes = size;
  record.relation = relation;
  record.path.pair = "GPU0/mlx5_0";
  record.measured.bandwidth = Bandwidth{};
  record.measured.bandwidth->median_gbytes = gbytes;
  return record;
}

RunRecord pair_latency(const char* relation, std::uint64_t size, double p50_ns) {
  RunRecord record = pair_rate(relation, size, 1);
  record.spec.test.metric = Metric::kLatency;
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  record.measured.latency->p50_ns = p50_ns;
  return record;
}

std::string relations_text(const std::vector<RunRecord>& records, Sizes sizes = Sizes::kAll,
                           const ConsoleOptions& options = {}) {
  RelationComparison comparison;
  for (const RunRecord& record : records) comparison.add(record);
  std::ostringstream out;
  comparison.print(out, options, sizes);
  return out.str();
}

std::vector<RunRecord> rates_and_latencies() {
  return {pair_rate("SYS", 4096, 2),          pair_rate("PIX", 4096, 8),         pair_rate("PXB", 4096, 10),
          pair_rate("SYS", 4096, 4),          pair_rate("PIX", 65536, 50),       pair_rate("SYS", 65536, 25),
          pair_latency("PIX", 8, 1500),       pair_latency("SYS", 8, 3000),      pair_latency("PHB", 8, 1200),
          pair_latency("PIX", 4096, 123'456), pair_latency("SYS", 4096, 246'912)};
}

constexpr const char* kTitle =
    "\nRelations compared: median over the pairs of each (lowest to highest pair), ratio to the best\n";

TEST(Relations, EveryTestHasItsTableNearestRelationFirst) {
  EXPECT_EQ(relations_text(rates_and_latencies()),
            std::string(kTitle) +
                "write_bw, GB/s\n"
                "      size  relation pairs     median                  spread    ratio\n"
                "     4 KiB  PIX          1      8.000          8.000 to 8.000    0.800\n"
                "     4 KiB  PXB          1      10.00          10.00 to 10.00    1.000\n"
                "     4 KiB  SYS          2      3.000          2.000 to 4.000    0.300\n"
                "    64 KiB  PIX          1      50.00          50.00 to 50.00    1.000\n"
                "    64 KiB  SYS          1      25.00          25.00 to 25.00    0.500\n"
                "write_lat, us (p50)\n"
                "      size  relation pairs     median                  spread    ratio\n"
                "       8 B  PIX          1      1.500          1.500 to 1.500    1.250\n"
                "       8 B  PHB          1      1.200          1.200 to 1.200    1.000\n"
                "       8 B  SYS          1      3.000          3.000 to 3.000    2.500\n"
                "     4 KiB  PIX          1      123.5          123.5 to 123.5    1.000\n"
                "     4 KiB  SYS          1      246.9          246.9 to 246.9    2.000\n");
}

TEST(Relations, TheTellingSizeIsTheLargestOfRatesAndTheSmallestOfLatencies) {
  ConsoleOptions options;
  options.rate_unit = RateUnit::kGigabits;
  EXPECT_EQ(relations_text(rates_and_latencies(), Sizes::kTelling, options),
            std::string(kTitle) +
                "write_bw, Gb/s\n"
                "      size  relation pairs     median                  spread    ratio\n"
                "    64 KiB  PIX          1      400.0          400.0 to 400.0    1.000\n"
                "    64 KiB  SYS          1      200.0          200.0 to 200.0    0.500\n"
                "write_lat, us (p50)\n"
                "      size  relation pairs     median                  spread    ratio\n"
                "       8 B  PIX          1      1.500          1.500 to 1.500    1.250\n"
                "       8 B  PHB          1      1.200          1.200 to 1.200    1.000\n"
                "       8 B  SYS          1      3.000          3.000 to 3.000    2.500\n");
}

/// The cell of the median, of a relation whose pairs have these rates.
std::string median_cell(const std::vector<double>& rates) {
  std::vector<RunRecord> records;
  for (const double each : rates) records.push_back(pair_rate("PIX", 64, each));
  const std::string text = relations_text(records);
  const std::size_t row = text.find("PIX");
  std::istringstream words(row == std::string::npos ? "" : text.substr(row));
  std::string relation, pairs, median;
  words >> relation >> pairs >> median;
  return median;
}

TEST(Relations, TheMedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  EXPECT_EQ(median_cell({5}), "5.000");
  EXPECT_EQ(median_cell({9, 5}), "7.000");
  EXPECT_EQ(median_cell({9, 1, 2}), "2.000");
  EXPECT_EQ(median_cell({1, 8, 9, 4}), "6.000");
  EXPECT_EQ(median_cell({7, 1, 2, 3, 4}), "3.000");
  EXPECT_EQ(median_cell({6, 5, 4, 3, 2, 1}), "3.500");
}

TEST(Relations, FiguresHaveFourDigitsAndSixDecimalsAtMost) {
  const std::pair<double, const char*> kCells[] = {
      {1, "1.000"},     {0.5, "0.5000"},    {0.012345, "0.01235"}, {0.0012345, "0.001234"}, {0.00012345, "0.000123"},
      {99.99, "99.99"}, {12345.6, "12346"}, {123456, "123456"}};
  for (const auto& [rate, cell] : kCells) EXPECT_EQ(median_cell({rate}), cell) << rate;
}

TEST(Relations, WhatIsNoFigureIsLeftOut) {
  EXPECT_EQ(median_cell({0}), "");
  EXPECT_EQ(median_cell({-1}), "");
  EXPECT_EQ(median_cell({std::nan("")}), "");
  EXPECT_EQ(median_cell({std::numeric_limits<double>::infinity()}), "");
  EXPECT_EQ(median_cell({0, 3}), "3.000");
  RunRecord nothing = pair_rate("PIX", 64, 1);
  nothing.measured.bandwidth.reset();
  EXPECT_EQ(relations_text({nothing}), "");
}

TEST(Relations, OneSimulatedRunIsEnoughToSaySo) {
  std::vector<RunRecord> records = {pair_rate("PIX", 64, 1), pair_rate("SYS", 64, 1), pair_rate("PIX", 128, 1)};
  EXPECT_THAT(relations_text(records), Not(testing::HasSubstr("simulated")));
  records[1].device_kind = "simulated";
  EXPECT_THAT(relations_text(records),
              testing::HasSubstr(std::string(kTitle) + "  Results of simulated links, not of hardware.\n"));
}

TEST(Relations, ANarrowTerminalBreaksTheTitle) {
  ConsoleOptions options;
  options.columns = 80;
  EXPECT_THAT(
      relations_text({pair_rate("PIX", 64, 1)}, Sizes::kAll, options),
      testing::StartsWith(
          "\nRelations compared: median over the pairs of each (lowest to highest pair),\n    ratio to the best\n"));
}

}  // namespace
}  // namespace gdrperf::report
