#include "gdrperf/report/console.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gdrperf/base/unique_fd.h"
#include "gdrperf/report/progress.h"

namespace gdrperf::report {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

/// A terminal: what is written to `terminal` is read from `master`.
struct Pty {
  UniqueFd master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  UniqueFd terminal;
  Pty() {
    if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return;
    terminal.reset(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
  std::string read() const {
    char text[4096];
    const ssize_t got = ::read(master.get(), text, sizeof text);
    return std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  }
};

RunRecord record_of_kind(const std::string& kind) {
  RunRecord record;
  record.device_kind = kind;
  record.measured.bandwidth = Bandwidth{};
  return record;
}

std::string table_of(const RunRecord& record) {
  std::ostringstream out;
  ConsoleTable table(out, {});
  table.add(record);
  table.finish();
  return out.str();
}

TEST(Warnings, OfUnstableRunsAreOneKindForEachReason) {
  const std::string steps = ": it changes in steps, as when another job starts";
  const std::string kind = warning_kind(
      "two levels: 4 GB/s for 0.2 s, then 16 MB/s for 0.5 s; known within +-3 %, not +-1 %, after 0.7 s" + steps);
  EXPECT_EQ(
      kind,
      warning_kind("eight levels between 1 GB/s and 2 GB/s; not known (the interval is wider than the value)" + steps));
  EXPECT_EQ(kind,
            warning_kind("mean and median differ by 5 %, more than +-1 %: part of the time was much slower" + steps));
  EXPECT_NE(kind, warning_kind("known within +-3 %, not +-1 %, after 0.7 s: it drifts"));
  EXPECT_NE(warning_kind("the client stood still for 2 s: measure again"),
            warning_kind("the server stood still for 2 s: measure again"));
}

TEST(ConsoleTable, OnlyHardwareGoesWithoutSayingSo) {
  EXPECT_THAT(table_of(record_of_kind("hardware")), Not(HasSubstr("not of hardware")));
  for (const char* kind : {"rxe", "software", "simulated", "unheard-of"}) {
    EXPECT_THAT(table_of(record_of_kind(kind)), HasSubstr("not of hardware")) << kind;
  }
}

TEST(ConsoleTable, DetailsTellHowTheHostTreatsTheNic) {
  RunRecord record = record_of_kind("hardware");
  record.spec.comp_vector = 2;
  record.client.interrupt_cpus = "4";
  record.client.relaxed_ordering = "asked";
  record.server.relaxed_ordering = "disabled";
  record.client.ooo = true;
  record.client.ece = "vendor 0x15b3, options 0x5";
  ConsoleOptions options;
  options.detail = Detail::kAll;
  std::ostringstream out;
  ConsoleTable(out, options).add(record);
  for (const char* words :
       {"client interrupted on CPU 4 (completion vector 2)", "client relaxed ordering asked",
        "server relaxed ordering disabled", "packets placed out of order", "ECE vendor 0x15b3, options 0x5"}) {
    EXPECT_THAT(out.str(), HasSubstr(words));
  }
  EXPECT_THAT(out.str(), Not(HasSubstr("server interrupted")));
}

TEST(ConsoleTable, OnlyHardwareIsRankedAmongPublishedFigures) {
  for (const char* kind : {"hardware", "rxe", "software", "simulated"}) {
    RunRecord record = record_of_kind(kind);
    record.relation = "PIX";
    record.path.pair = "GPU0/mlx5_0";
    record.path.link_gbps = 400;
    record.measured.bandwidth->median_gbytes = 49;
    const bool ranked = table_of(record).find("Published for PIX") != std::string::npos;
    EXPECT_EQ(ranked, record.device_kind == "hardware") << kind;
  }
}

TEST(ConsoleTable, WhatAnotherHostSaysReachesTheTerminalHarmless) {
  RunRecord record = record_of_kind("hardware");
  constexpr const char* kHostile = "x\x1b[2J\r";
  for (Outside* text : {&record.client.device, &record.client.gid, &record.path.pair}) *text = kHostile;
  for (std::string* text : {&record.server.buffer, &record.server.gid_type, &record.path.limited_by}) *text = kHostile;
  record.path.ceiling_gbps = 100;
  record.warnings = {"y\x1b[2J\n"};
  EXPECT_THAT(table_of(record), Not(testing::AnyOf(HasSubstr("\x1b"), HasSubstr("\r"))));
}

TEST(ConsoleTable, DirectAndStagedAreTables) {
  RunRecord record = record_of_kind("hardware");
  record.client.buffer = "cuda:0";
  const std::string direct = table_of(record);
  record.spec.path = Path::kStaged;
  EXPECT_NE(table_of(record).substr(0, 300), direct.substr(0, 300));
  EXPECT_THAT(table_of(record), HasSubstr("staged through host memory"));
}

TEST(ConsoleTable, TinyRatesKeepTheColumns) {
  RunRecord record = record_of_kind("rxe");
  record.spec.size_bytes = 8u << 20;
  record.measured.bandwidth->max_gbytes = 0.06503;
  record.measured.bandwidth->msg_rate_mpps = 3.337e-6;
  EXPECT_THAT(table_of(record), HasSubstr("   0.06503 0.0000033"));
}

TEST(ConsoleTable, OneHeadingForRowsThatShareIt) {
  std::ostringstream out;
  ConsoleTable table(out, {});
  RunRecord record = record_of_kind("software");
  table.add(record);
  const std::string first = out.str();
  record.spec.size_bytes = 4096;
  record.spec.tx_depth = 7;
  record.spec.cq_mod = 3;
  table.add(record);
  const std::string more = out.str().substr(first.size());
  EXPECT_EQ(std::count(more.begin(), more.end(), '\n'), 1);
  record.spec.qps = 2;
  table.add(record);
  EXPECT_THAT(out.str().substr(first.size() + more.size()), HasSubstr("2 QPs"));
}

std::string narrow_table(const std::vector<RunRecord>& records, Detail detail = Detail::kBrief) {
  std::ostringstream out;
  ConsoleOptions options;
  options.columns = 80;
  options.detail = detail;
  ConsoleTable table(out, options);
  for (const RunRecord& record : records) table.add(record);
  table.finish();
  return out.str();
}

RunRecord latency_of(double max_ns) {
  RunRecord record = record_of_kind("hardware");
  record.spec.test = {Operation::kWrite, Metric::kLatency};
  record.measured.bandwidth.reset();
  record.measured.latency = Latency{};
  for (double* each :
       {&record.measured.latency->min_ns, &record.measured.latency->p50_ns, &record.measured.latency->p90_ns,
        &record.measured.latency->p99_ns, &record.measured.latency->p999_ns, &record.measured.latency->p9999_ns}) {
    *each = max_ns / 3;
  }
  record.measured.latency->max_ns = max_ns;
  record.measured.unstable = true;
  return record;
}

TEST(ConsoleTable, EightyColumnsHoldEveryRow) {
  RunRecord record = record_of_kind("simulated");
  record.spec.size_bytes = (64u << 20) - 3;
  record.client.device = record.server.device = "a_rather_long_device_name_0";
  record.client.gid = record.server.gid = "fe80:1234:5678:9abc:def0:1234:5678:9abc";
  record.path.ceiling_gbps = 400;
  record.path.limited_by = "the slot of 0000:17:00.0, which is x8 of PCIe 4.0 where x16 are possible, both ways";
  record.warnings = {
      "a warning that is longer than any terminal of eighty columns ever was, and that goes on a little"};
  record.measured.unstable = true;
  *record.measured.bandwidth = {.median_gbytes = 6.579e-6,
                                .ci95_low_gbytes = 1e-7,
                                .ci95_high_gbytes = 9e-6,
                                .mean_gbytes = 6e-6,
                                .min_gbytes = 1.234e-7,
                                .max_gbytes = 9.876e-6,
                                .batches_gbytes = {},
                                .msg_rate_mpps = 1.234e-7};
  std::istringstream lines(narrow_table({record, latency_of(999.9e6), latency_of(12e9)}, Detail::kAll));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(ConsoleTable, ColumnsNeverTouch) {
  for (const double ns : {1.0, 999.9e3, 1e6, 999.9e6, 1e9, 99e9}) {
    const std::string text = narrow_table({latency_of(ns)});
    const std::string row = text.substr(text.find("\n    64 KiB") + 1);
    std::istringstream words(row.substr(0, row.find('\n')));
    std::size_t count = 0;
    for (std::string word; words >> word;) ++count;
    EXPECT_EQ(count, 2 + 7 + 1u) << row;
  }
}

TEST(ConsoleTable, FourSizesMakeASparkline) {
  std::vector<RunRecord> records;
  for (const std::uint64_t size : {64u, 1024u, 4096u, 65536u}) {
    records.push_back(record_of_kind("hardware"));
    records.back().spec.size_bytes = size;
    records.back().measured.bandwidth->median_gbytes = static_cast<double>(size) / 65536 * 8;
  }
  EXPECT_THAT(narrow_table(records), HasSubstr("rate over size, 64 B to 64 KiB: ___#, at most 8 GB/s at 64 KiB"));
  records.pop_back();
  EXPECT_THAT(narrow_table(records), Not(HasSubstr("over size")));
}

TEST(Colour, TerminalsOnlyAndNotAgainstNoColor) {
  const Pty pty;
  if (!pty.terminal) GTEST_SKIP() << "no pseudo-terminals here";
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  EXPECT_EQ(colour_for(pty.terminal.get()), Colour::kOn);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(colour_for(pty.terminal.get()), Colour::kOff);
  ::setenv("NO_COLOR", "", 1);
  EXPECT_EQ(colour_for(pty.terminal.get()), Colour::kOn);
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(colour_for(pty.terminal.get()), Colour::kOff);
  ::setenv("TERM", "xterm", 1);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(colour_for(ends[1]), Colour::kOff);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Progress, LineSaysHowFarAndHowLong) {
  EXPECT_EQ(progress_line(0, 138, "write_bw 2 B", seconds(3)), "[0/138] write_bw 2 B");
  EXPECT_EQ(progress_line(69, 138, "write_bw 2 B", seconds(60)),
            "[69/138] write_bw 2 B, 60 s left");
  EXPECT_EQ(progress_line(1, 138, "write_bw 2 B", seconds(2)),
            "[1/138] write_bw 2 B, 5 min left");
  EXPECT_EQ(progress_line(138, 138, "done", seconds(60)), "[138/138] done");
}

TEST(Progress, RewritesOneLineOfATerminal) {
  const Pty pty;
  if (!pty.terminal) GTEST_SKIP() << "no pseudo-terminals here";
  ::setenv("TERM", "xterm", 1);
  std::FILE* out = ::fdopen(::dup(pty.terminal.get()), "w");
  ASSERT_NE(out, nullptr);
  {
    ProgressLine progress(out);
    EXPECT_TRUE(progress.enabled());
    progress.show("write_bw 2 B");
    EXPECT_EQ(pty.read(), "\r\033[Kwrite_bw 2 B");
    progress.clear();
    EXPECT_EQ(pty.read(), "\r\033[K");
    progress.clear();
    progress.show(std::string(200, 'x'));
    EXPECT_EQ(pty.read(), "\r\033[K" + std::string(79, 'x'));
  }
  EXPECT_EQ(pty.read(), "\r\033[K");  // the destructor leaves a clean line
  std::fclose(out);
}

TEST(Progress, ADumbTerminalCannotRewriteALine) {
  const Pty pty;
  if (!pty.terminal) GTEST_SKIP() << "no pseudo-terminals here";
  std::FILE* out = ::fdopen(::dup(pty.terminal.get()), "w");
  ASSERT_NE(out, nullptr);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(ProgressLine(out).enabled());
  ::unsetenv("TERM");
  EXPECT_TRUE(ProgressLine(out).enabled());
  ::setenv("TERM", "xterm", 1);
  std::fclose(out);
}

TEST(Progress, IsSilentElsewhere) {
  std::FILE* out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  {
    ProgressLine progress(out);
    EXPECT_FALSE(progress.enabled());
    progress.show("write_bw 2 B");
  }
  EXPECT_EQ(std::ftell(out), 0);
  std::fclose(out);
}

TEST(Console, SettingsNameTheTransport) {
  RunRecord run;
  run.spec.size_bytes = 64;
  run.measured.bandwidth = Bandwidth();
  for (const Transport each : {Transport::kRc, Transport::kUc, Transport::kUd, Transport::kXrc}) {
    run.spec.transport = each;
    std::ostringstream out;
    ConsoleTable(out, {}).add(run);
    EXPECT_THAT(out.str(), HasSubstr(std::string(to_string(each)) + " by address exchange"));
  }
}

}  // namespace
}  // namespace gdrperf::report
