#include "report/console/parts.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "gdrperf/report/progress.h"
#include "report/console/sparkline.h"
#include "report/console/under_load.h"

namespace gdrperf::report {
namespace {

Part part_with(const char* name, const char* device, const char* peer, int cpu, int qps, double gbytes) {
  Part part;
  part.name = name;
  part.device = device;
  part.peer_device = peer;
  part.cpu = cpu;
  part.peer_cpu = cpu < 0 ? -1 : cpu + 8;
  part.qps = qps;
  part.gbytes = gbytes;
  return part;
}

/// Two rails of two threads each.
RunRecord two_rails() {
  RunRecord record;
  record.measured.parts = {part_with("mlx5_0 thread 0", "mlx5_0", "mlx5_4", 0, 1, 3),
                           part_with("mlx5_0 thread 1", "mlx5_0", "mlx5_4", 1, 2, 5),
                           part_with("mlx5_1 thread 0", "mlx5_1", "mlx5_5", 2, 3, 4),
                           part_with("mlx5_1 thread 1", "mlx5_1", "mlx5_5", -1, 4, 8)};
  record.measured.start_spread_s = 12.345e-6;
  return record;
}

TEST(Parts, ThreadsAndRailsAreComparedWithTheirMean) {
  EXPECT_EQ(parts_text(two_rails(), RateUnit::kGigabytes),
            "  at the same time               CPUs   QPs        GB/s        Mpps     of mean\n"
            "  mlx5_0 thread 0                 0/8     1       3.000     0.04578      60.0 %\n"
            "  mlx5_0 thread 1                 1/9     2       5.000     0.07629     100.0 %\n"
            "  mlx5_1 thread 0                2/10     3       4.000     0.06104      80.0 %\n"
            "  mlx5_1 thread 1                   -     4       8.000      0.1221     160.0 %\n"
            "  rail mlx5_0                       -     3       8.000      0.1221      80.0 %\n"
            "  rail mlx5_1                       -     7       12.00      0.1831     120.0 %\n"
            "  slowest: rail mlx5_0, 80.0 % of the mean; all began within 12.3 us\n");
  EXPECT_EQ(parts_text(RunRecord(), RateUnit::kGigabytes), "");
}

TEST(Parts, WithoutRailsTheSlowestThreadIsNamed) {
  RunRecord record = two_rails();
  record.measured.parts.resize(2);
  EXPECT_EQ(parts_text(record, RateUnit::kGigabits),
            "  at the same time               CPUs   QPs        Gb/s        Mpps     of mean\n"
            "  mlx5_0 thread 0                 0/8     1       24.00     0.04578      75.0 %\n"
            "  mlx5_0 thread 1                 1/9     2       40.00     0.07629     125.0 %\n"
            "  slowest: mlx5_0 thread 0, 75.0 % of the mean; all began within 12.3 us\n");
}

TEST(Parts, OfAnIncastEachHasItsShareOfTheWhole) {
  RunRecord record = two_rails();
  record.measured.incast = true;
  record.measured.parts.resize(3);
  Victim& victim = record.measured.victim.emplace();
  victim.test = {Operation::kSend, Metric::kLatency};
  victim.device = "mlx5_7\r";
  victim.idle.p50_ns = 2000;
  victim.idle.p99_ns = 0;
  victim.idle.p999_ns = 0.5;
  victim.loaded.p50_ns = 3000;
  victim.loaded.p99_ns = 9000;
  victim.loaded.p999_ns = 10000;
  // Jain's index: 12 * 12 / (3 * (9 + 25 + 16)).
  EXPECT_EQ(parts_text(record, RateUnit::kGigabytes),
            "  at the same time               CPUs   QPs        GB/s        Mpps       share\n"
            "  mlx5_0 thread 0                 0/8     1       3.000     0.04578      25.0 %\n"
            "  mlx5_0 thread 1                 1/9     2       5.000     0.07629      41.7 %\n"
            "  mlx5_1 thread 0                2/10     3       4.000     0.06104      33.3 %\n"
            "  slowest: mlx5_0 thread 0, 75.0 % of the mean; all began within 12.3 us\n"
            "  fairness (Jain's index): 0.9600\n"
            "  victim: send_lat from mlx5_7\xef\xbf\xbd\n"
            "                          p50 us      p99 us    p99.9 us\n"
            "            idle           2.000       0.000       0.001\n"
            "            loaded         3.000       9.000      10.000\n"
            "            ratio          1.500           -       20000\n");
}

TEST(Parts, ARailIsAPairOfDevices) {
  Measurement measured = two_rails().measured;
  ASSERT_EQ(rails_of(measured).size(), 2u);
  EXPECT_EQ(rails_of(measured)[0].cpu, -1);
  EXPECT_EQ(rails_of(measured)[0].peer_cpu, -1);
  measured.parts[1].peer_device = "mlx5_9";
  const std::vector<Part> three = rails_of(measured);
  ASSERT_EQ(three.size(), 3u) << "another device of the server is another rail";
  EXPECT_EQ(three[2].name, "rail mlx5_1");
  EXPECT_EQ(three[2].gbytes, 12);
  EXPECT_EQ(three[2].qps, 7);
}

TEST(Parts, RailsThatSayNothingNewAreLeftOut) {
  Measurement measured = two_rails().measured;
  measured.parts = {measured.parts[0], measured.parts[2]};
  EXPECT_TRUE(rails_of(measured).empty()) << "of one thread each";
  measured = two_rails().measured;
  measured.parts.resize(2);
  EXPECT_TRUE(rails_of(measured).empty()) << "one rail is the sum";
  measured = two_rails().measured;
  measured.incast = true;
  EXPECT_TRUE(rails_of(measured).empty());
}

TEST(Parts, TheSlowestIsTheRailOrElseTheThread) {
  Measurement measured = two_rails().measured;
  EXPECT_EQ(slowest_of(measured).name, "rail mlx5_0");
  measured.parts[2].gbytes = 0;
  measured.parts[3].gbytes = 8;
  EXPECT_EQ(slowest_of(measured).name, "rail mlx5_0") << "the first of two that are equal";
  measured.parts[3].gbytes = 7.9;
  EXPECT_EQ(slowest_of(measured).name, "rail mlx5_1");
  measured.parts.resize(2);
  EXPECT_EQ(slowest_of(measured).name, "mlx5_0 thread 0");
}

TEST(Parts, JainsIndexIsOneForEqualsAndAnNthForOneThatHasAll) {
  const auto index = [](const std::vector<double>& rates) {
    std::vector<Part> parts;
    for (const double each : rates) parts.push_back(part_with("", "", "", 0, 1, each));
    return jain_index(parts);
  };
  EXPECT_DOUBLE_EQ(index({0.25, 0.25}), 1);
  EXPECT_DOUBLE_EQ(index({7, 7, 7, 7}), 1);
  EXPECT_DOUBLE_EQ(index({0, 0, 4, 0}), 0.25);
  EXPECT_DOUBLE_EQ(index({1, 2, 3}), 36.0 / 42);
  EXPECT_TRUE(std::isnan(index({0, 0})));
  EXPECT_TRUE(std::isnan(index({})));
}

RunRecord loaded_run() {
  RunRecord record;
  record.spec.load_size_bytes = 1 << 20;
  record.measured.latency = Latency{.p50_ns = 2500, .p90_ns = 0, .p99_ns = 12'000, .p999_ns = 1'000'000};
  UnderLoad& under = record.measured.under_load.emplace();
  under.idle.p50_ns = 2000;
  under.idle.p99_ns = 3000;
  under.idle.p999_ns = 5000.5;
  under.stream = {Operation::kRead, Metric::kBandwidth};
  under.carried_gbytes = 0.8;
  under.offered_gbytes = 0.9;
  under.alone_gbytes = 0.95;
  return record;
}

TEST(UnderLoad, LatencyWithAndWithoutTheStreamStandsSideBySide) {
  EXPECT_EQ(under_load_text(loaded_run(), RateUnit::kGigabits),
            "            with read_bw of 1 MiB: 6.400 Gb/s carried of 7.200 Gb/s offered, 7.600 Gb/s alone\n"
            "                          p50 us      p99 us    p99.9 us\n"
            "            idle           2.000       3.000       5.000\n"
            "            loaded         2.500      12.000    1000.000\n"
            "            ratio          1.250       4.000       200.0\n");
}

TEST(UnderLoad, ARatioToNothingIsNoNumber) {
  const Latency none{}, half{.p50_ns = 0.5}, some{.p50_ns = 2};
  EXPECT_TRUE(std::isnan(loaded_ratio(none, some, &Latency::p50_ns)));
  EXPECT_EQ(loaded_ratio(half, some, &Latency::p50_ns), 4);
}

TEST(UnderLoad, RatesThatAreNotKnownAreLeftOut) {
  RunRecord record = loaded_run();
  record.measured.under_load->offered_gbytes = 0;
  record.measured.under_load->alone_gbytes = 0;
  const std::string text = under_load_text(record, RateUnit::kGigabytes);
  EXPECT_EQ(text.substr(0, text.find('\n')), "            with read_bw of 1 MiB: 0.8000 GB/s carried");
  record.measured.latency.reset();
  EXPECT_EQ(under_load_text(record, RateUnit::kGigabytes), "");
  record = loaded_run();
  record.measured.under_load.reset();
  EXPECT_EQ(under_load_text(record, RateUnit::kGigabytes), "");
}

using Points = std::map<std::uint64_t, double>;

TEST(Sparkline, HeightsAreLinearFromZero) {
  const Points rates = {{2, 0}, {4, 0.0624}, {8, 0.1}, {16, 0.2}, {32, 0.3}, {64, 0.4}, {128, 0.49}, {256, 0.5}};
  ConsoleOptions options;
  EXPECT_EQ(sparkline(rates, Metric::kBandwidth, options),
            "rate over size, 2 B to 256 B: __.-=*##, at most 0.5 GB/s at 256 B");
  options.charset = Charset::kUtf8;
  options.rate_unit = RateUnit::kGigabits;
  EXPECT_EQ(sparkline(rates, Metric::kBandwidth, options),
            "rate over size, 2 B to 256 B: ▁▁▂▄▅▇██, at most 4 Gb/s at 256 B");
}

TEST(Sparkline, OfLatenciesTheLeastIsNamed) {
  const Points latencies = {{2, 2000}, {64, 1500}, {1024, 1500}, {4096, 6000}};
  ConsoleOptions options;
  options.rate_unit = RateUnit::kGigabits;
  EXPECT_EQ(sparkline(latencies, Metric::kLatency, options), "p50 over size, 2 B to 4 KiB: :::#, least 1.5 us at 64 B");
}

TEST(Sparkline, NothingWithoutFourSizesAndAFigureAboveZero) {
  const auto line = [](double one, double other) {
    return sparkline({{1, one}, {2, one}, {4, one}, {8, other}}, Metric::kBandwidth, {});
  };
  EXPECT_NE(line(0, 0.001), "");
  EXPECT_EQ(line(0, 0), "");
  EXPECT_EQ(line(-1, 1), "");
  EXPECT_EQ(line(-2, -1), "");
  EXPECT_EQ(line(1, std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(sparkline({{1, 1}, {2, 1}, {4, 1}}, Metric::kBandwidth, {}), "");
}

TEST(Progress, ShortTimesAreInTheUnitThatFits) {
  const std::pair<double, const char*> kTimes[] = {
      {0, "0.0 s"},   {2.5, "2.5 s"}, {9.94, "9.9 s"}, {9.95, "10 s"},   {10.4, "10 s"},
      {89.4, "89 s"}, {90, "2 min"},  {90.5, "2 min"}, {150.1, "3 min"}, {3600, "60 min"}};
  for (const auto& [time_s, text] : kTimes) EXPECT_EQ(short_time(time_s), text) << time_s;
}

}  // namespace
}  // namespace gdrperf::report
