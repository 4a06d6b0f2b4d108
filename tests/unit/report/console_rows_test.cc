#include "report/console/console_rows.h"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gdrperf::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

ConsoleOptions options_of(std::size_t columns, RateUnit unit = RateUnit::kGigabytes) {
  ConsoleOptions options;
  options.columns = columns;
  options.rate_unit = unit;
  return options;
}

/// A bandwidth run every figure of which is another number.
RunRecord rate_row() {
  RunRecord record;
  record.device_kind = "hardware";
  record.spec.tx_depth = 128;
  record.spec.cq_mod = 16;
  record.measured.iterations = 12345;
  record.measured.duration_s = 1.2345;
  record.measured.warmup_cut_s = 0.05678;
  record.measured.bandwidth = {.median_gbytes = 12.5,
                               .ci95_low_gbytes = 12.4,
                               .ci95_high_gbytes = 12.55,
                               .mean_gbytes = 12.25,
                               .min_gbytes = 11.25,
                               .max_gbytes = 13,
                               .batches_gbytes = {11.25, 12.5, 13},
                               .msg_rate_mpps = 0.1907};
  return record;
}

/// The same of a latency run; `samples` carry every percentile but the last.
RunRecord latency_row_of(std::uint64_t samples) {
  RunRecord record;
  record.device_kind = "hardware";
  record.spec.test.metric = Metric::kLatency;
  record.spec.size_bytes = 8;
  record.measured.iterations = samples;
  record.measured.duration_s = 0.5;
  record.measured.warmup_cut_s = 0.1;
  record.measured.stop = StopReason::kCap;
  record.measured.latency = Latency{1500, 2001, 2002, 3003, 4004, 5005, 60006, 2222.2, samples, true, 1990, 2002};
  return record;
}

std::string row_text(const RunRecord& record, const ConsoleOptions& options) {
  Marks marks;
  return row_of(record, options, marks);
}

TEST(ConsoleRows, EveryFigureOfABandwidthRowHasItsColumn) {
  RunRecord record = rate_row();
  EXPECT_EQ(column_names(record, options_of(100)) + "\n" + row_text(record, options_of(100)),
            "      size   iterations    tx/cq median GB/s +-95 % CI   min GB/s  max GB/s      Mpps\n"
            "    64 KiB        12345   128/16       12.50  +-0.80 %      11.25     13.00    0.1907");
  record.path.ceiling_gbps = 0.5;  // less than 1 is known, too
  record.measured.bandwidth->median_gbytes = 0.05;
  record.measured.bandwidth->ci95_low_gbytes = 0.0499;
  record.measured.bandwidth->ci95_high_gbytes = 0.0505;
  EXPECT_EQ(column_names(record, options_of(99, RateUnit::kGigabits)) + "\n" +
                row_text(record, options_of(99, RateUnit::kGigabits)),
            "      size median Gb/s +-95 % CI   min Gb/s  max Gb/s      Mpps     of max\n"
            "    64 KiB      0.4000  +-1.00 %      90.00     104.0    0.1907     80.0 %");
}

TEST(ConsoleRows, AShareNeedsAMaximumAndARate) {
  RunRecord record = rate_row();
  const std::string without = column_names(record, options_of(80));
  EXPECT_EQ(without.find("of max"), std::string::npos);
  record.path.ceiling_gbps = 400;
  EXPECT_EQ(column_names(record, options_of(80)), without + "     of max");
  record.measured.bandwidth.reset();
  EXPECT_EQ(column_names(record, options_of(80)), without) << "a run that came to nothing";
}

TEST(ConsoleRows, EveryFigureOfALatencyRowHasItsColumn) {
  const RunRecord record = latency_row_of(10000);
  EXPECT_EQ(column_names(record, options_of(0)) + "\n" + row_text(record, options_of(0)),
            "      size     samples    min us     p50 us     p90 us     p99 us   p99.9 us  p99.99 us     max us\n"
            "       8 B       10000     1.500      2.001      2.002      3.003      4.004      5.005~    60.006");
  EXPECT_EQ(column_names(record, options_of(80)) + "\n" + row_text(record, options_of(80)),
            "      size us: min      p50      p90      p99    p99.9   p99.99      max\n"
            "       8 B   1.500    2.001    2.002    3.003    4.004    5.005~  60.006");
}

TEST(ConsoleRows, FromAHundredColumnsOnAndWithoutATerminalAllAreShown) {
  for (const std::size_t columns : {0u, 100u, 101u, 200u}) {
    EXPECT_EQ(row_text(rate_row(), options_of(columns)), row_text(rate_row(), options_of(1000))) << columns;
    EXPECT_EQ(columns_left_out(Metric::kBandwidth, options_of(columns)), "") << columns;
  }
  for (const std::size_t columns : {1u, 80u, 99u}) {
    EXPECT_EQ(row_text(rate_row(), options_of(columns)),
              "    64 KiB       12.50  +-0.80 %      11.25     13.00    0.1907")
        << columns;
    ConsoleOptions options = options_of(columns);
    EXPECT_EQ(columns_left_out(Metric::kBandwidth, options),
              "iterations and tx/cq are left out below 100 columns; -v shows them");
    EXPECT_EQ(columns_left_out(Metric::kLatency, options), "samples are left out below 100 columns; -v shows them");
    options.detail = Detail::kAll;
    EXPECT_EQ(columns_left_out(Metric::kLatency, options), "") << "the lines below the row have them";
  }
}

TEST(ConsoleRows, MicrosecondsHaveAsManyDigitsAsTheyAreWorth) {
  const std::pair<double, const char*> kCells[] = {
      {0, "0.000"},        {0.4, "0.000"},        {1234.5678, "1.235"}, {999'999, "999.999"}, {1e6, "1000.0"},
      {1.26e6, "1260.0"},  {1'234'567, "1234.6"}, {9.99e7, "99900.0"},  {1e8, "100000"},      {12e9, "12000000"},
      {kNone, "-"}};
  for (const auto& [ns, cell] : kCells) {
    RunRecord record = latency_row_of(100'000);
    record.measured.latency->min_ns = ns;
    std::istringstream words(row_text(record, options_of(80)));
    std::string size, unit, shown;
    words >> size >> unit >> shown;
    EXPECT_EQ(shown, cell) << ns;
  }
}

/// A run whose 95 % interval reaches exactly that far above its median, and half as far below.
RunRecord as_wide_as(double percent) {
  RunRecord record = rate_row();
  Bandwidth& bandwidth = *record.measured.bandwidth;
  double median = 1;
  const auto high = [&] { return median + median * percent / 100; };
  while (100.0 * (high() - median) / median != percent) median += 0.001;
  bandwidth.median_gbytes = median;
  bandwidth.ci95_high_gbytes = high();
  bandwidth.ci95_low_gbytes = median - median * percent / 200;
  return record;
}

TEST(ConsoleRows, AnIntervalHasThreeDigits) {
  const std::pair<double, const char*> kCells[] = {{0, "+-0.00 %"},     {0.25, "+-0.25 %"},   {1.5, "+-1.50 %"},
                                                   {9.99, "+-9.99 %"},  {9.995, "+-10.0 %"},  {10.44, "+-10.4 %"},
                                                   {99.94, "+-99.9 %"}, {99.95, "+-100 %"},   {99.97, "+-100 %"},
                                                   {100, "+-100 %"},    {100.5, "not known"}, {250, "not known"}};
  for (const auto& [percent, cell] : kCells) {
    const std::string row = row_text(as_wide_as(percent), options_of(80));
    EXPECT_NE(row.find(std::string(" ") + cell + "  "), std::string::npos) << percent << row;
  }
}

TEST(ConsoleRows, AnIntervalIsAsWideAsItsFartherEnd) {
  RunRecord record = rate_row();
  record.measured.bandwidth->median_gbytes = 4;
  record.measured.bandwidth->ci95_low_gbytes = 3.9;
  record.measured.bandwidth->ci95_high_gbytes = 4.05;
  EXPECT_NE(row_text(record, options_of(80)).find("+-2.50 %"), std::string::npos);
  record.measured.bandwidth->ci95_high_gbytes = 4.2;
  EXPECT_NE(row_text(record, options_of(80)).find("+-5.00 %"), std::string::npos);
}

TEST(ConsoleRows, WithoutAnIntervalTheRowIsMarkedOfFewBatches) {
  Marks marks;
  EXPECT_EQ(row_of(rate_row(), options_of(80), marks).find('?'), std::string::npos);
  EXPECT_FALSE(marks.few_batches);
  RunRecord record = rate_row();
  record.measured.bandwidth->ci95_low_gbytes = record.measured.bandwidth->ci95_high_gbytes = kNone;
  EXPECT_EQ(row_of(record, options_of(80), marks), "    64 KiB       12.50         -?     11.25     13.00    0.1907");
  EXPECT_TRUE(marks.few_batches);
  row_of(rate_row(), options_of(80), marks);
  EXPECT_TRUE(marks.few_batches) << "the note stands for the whole table";
}

TEST(ConsoleRows, APercentileIsMarkedWithFewerThanTenSamplesBeyond) {
  const std::pair<std::uint64_t, const char*> kMarked[] = {
      {19, "~~~~~"}, {20, " ~~~~"},   {99, " ~~~~"},    {100, "  ~~~"},    {999, "  ~~~"},
      {1000, "   ~~"}, {9999, "   ~~"}, {10000, "    ~"}, {99999, "    ~"}, {100000, "     "}};
  for (const auto& [samples, marked] : kMarked) {
    Marks marks;
    const std::string row = row_of(latency_row_of(samples), options_of(80), marks);
    std::string found;
    // Of the fixed columns: size, min, then five percentiles with a mark behind each.
    for (std::size_t at = 27; found.size() < 5; at += 9) found += row.at(at);
    EXPECT_EQ(found, marked) << samples << row;
    EXPECT_EQ(marks.few_samples, samples < 100000) << samples;
    row_of(latency_row_of(100000), options_of(80), marks);
    EXPECT_EQ(marks.few_samples, samples < 100000) << "the note stands for the whole table";
  }
}

TEST(ConsoleRows, AnUnstableRowEndsWithItsMark) {
  RunRecord record = rate_row();
  record.measured.unstable = true;
  Marks marks;
  EXPECT_EQ(row_of(record, options_of(80), marks), row_text(rate_row(), options_of(80)) + " !");
  EXPECT_TRUE(marks.unstable);
  ConsoleOptions colours = options_of(80);
  colours.colour = Colour::kOn;
  EXPECT_EQ(row_of(record, colours, marks), row_text(rate_row(), options_of(80)) + "\033[33m !\033[0m");
}

TEST(ConsoleRows, NinetyPercentAreGoodAndLessThanSeventyBad) {
  EXPECT_EQ(style_of_share(1.0), Style::kGood);
  EXPECT_EQ(style_of_share(0.9), Style::kGood);
  EXPECT_EQ(style_of_share(0.899), Style::kDoubtful);
  EXPECT_EQ(style_of_share(0.7), Style::kDoubtful);
  EXPECT_EQ(style_of_share(0.699), Style::kBad);
  EXPECT_EQ(style_of_share(std::nullopt), std::nullopt);
  RunRecord record = rate_row();
  record.path.ceiling_gbps = 110;
  ConsoleOptions colours = options_of(80);
  colours.colour = Colour::kOn;
  EXPECT_EQ(row_text(record, colours), row_text(rate_row(), options_of(80)) + "\033[32m     90.9 %\033[0m");
}

TEST(ConsoleRows, EachKindOfDeviceHasItsSentence) {
  EXPECT_EQ(not_of_hardware("hardware"), "");
  EXPECT_EQ(not_of_hardware("imported"), "Results of another program, whose output does not describe its device.");
  EXPECT_EQ(not_of_hardware("rxe"), "Results of the kernel's Soft-RoCE (rxe), not of hardware.");
  EXPECT_EQ(not_of_hardware("siw"), "Results of the kernel's software iWARP (siw), not of hardware.");
  EXPECT_EQ(not_of_hardware("software"), "Results of gdrperf's software device, not of hardware.");
  EXPECT_EQ(not_of_hardware("simulated"), "Results of the software device's simulated link, not of hardware.");
  EXPECT_EQ(not_of_hardware("x\033[2J"), "Results of a device of kind x\xef\xbf\xbd[2J, not of hardware.");
}

TEST(ConsoleRows, DetailsOfABandwidthRun) {
  RunRecord record = rate_row();
  EXPECT_EQ(details_of(record, options_of(0)),
            "            12345 messages in 1.23 s after 0.0568 s of warm-up; ended by precision; tx depth 128, "
            "completion every 16; "
            "3 batches, mean 12.25 GB/s");
  record.measured.unstable_reason = "drift";
  EXPECT_EQ(details_of(record, options_of(0)).find("drift"), std::string::npos) << "no reason where it is stable";
  record.measured.unstable = true;
  record.measured.stop = StopReason::kCap;
  record.measured.client_cpu_per_message_ns = 310;
  record.measured.server_cpu_per_message_ns = 4700;
  EXPECT_EQ(details_of(record, options_of(80, RateUnit::kGigabits)),
            "            12345 messages in 1.23 s after 0.0568 s of warm-up; ended by cap;\n"
            "            unstable: drift; tx depth 128, completion every 16; 3 batches, mean\n"
            "            98.00 Gb/s; client: 310 ns of CPU time per message; server: 4.7 us\n"
            "            of CPU time per message");
  record.measured.unstable_reason.clear();
  EXPECT_EQ(details_of(record, options_of(0)).find("unstable"), std::string::npos);
}

TEST(ConsoleRows, DetailsOfALatencyRun) {
  EXPECT_EQ(details_of(latency_row_of(1000), options_of(0)),
            "            1000 messages in 0.5 s after 0.1 s of warm-up; ended by cap; 1000 samples, mean 2.222 us, "
            "p50 +-0.55 %");
}

}  // namespace
}  // namespace gdrperf::report
