#include "gdrperf/report/console.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

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

TEST(ConsoleTable, OnlyHardwareGoesWithoutSayingSo) {
  EXPECT_THAT(table_of(record_of_kind("hardware")), Not(HasSubstr("not of hardware")));
  for (const char* kind : {"rxe", "software", "simulated", "unheard-of"}) {
    EXPECT_THAT(table_of(record_of_kind(kind)), HasSubstr("not of hardware")) << kind;
  }
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
  for (std::string* text : {&record.client.device, &record.server.buffer, &record.client.gid, &record.server.gid_type,
                            &record.path.pair, &record.path.limited_by}) {
    *text = "x\x1b[2J\r";
  }
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
  EXPECT_THAT(table_of(record), HasSubstr("  0.06503  3.337e-06"));
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

}  // namespace
}  // namespace gdrperf::report
